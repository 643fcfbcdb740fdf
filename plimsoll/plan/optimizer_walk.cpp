#include "plimsoll/plan/optimizer_walk.hpp"

#include <utility>

#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::plan {

using network::Tensor;
using timeline::Tag;
namespace rules = network::rules;

bool counters_on_host(const Job& job) {
  return job.optimizer_impl == OptimizerImpl::kTorchPython && job.facts().step_counters_on_host;
}

OptimizerWalk::OptimizerWalk(network::Autograd& autograd, const Job& job,
                             const std::vector<Tensor>& parameters,
                             timeline::OperationId first_operation)
    : a_(autograd),
      job_(job),
      recipe_(job.recipe()),
      parameters_(parameters),
      first_operation_(first_operation),
      states_(parameters.size()) {}

bool OptimizerWalk::has_gradient(std::size_t i) const {
  return static_cast<bool>(parameters_[i].impl()->grad);
}

void OptimizerWalk::make_state(std::size_t i) {
  State& state = states_[i];
  if (state.made) return;
  state.made = true;
  // Torch's optimizers keep moments in the dtype of each parameter.
  const bool own = job_.optimizer_impl == OptimizerImpl::kPlimsoll;
  const DType dtype = own ? recipe_.state : parameters_[i].dtype();
  const auto moment = [&] {
    return a_.empty_strided(parameters_[i].shape(), parameters_[i].strides(), dtype,
                            Tag::kOptimizer);
  };
  const int count = moments(job_.optimizer);
  if (has_step_counters(job_.optimizer, job_.optimizer_impl)) state.counter = make_counter();
  if (count > 0) state.first = moment();
  if (count > 1) state.second = moment();
}

Tensor OptimizerWalk::make_counter() {
  if (counters_on_host(job_)) return a_.host_tensor({}, DType::kFloat32);
  return a_.empty_strided({}, {}, DType::kFloat32, Tag::kOptimizer);
}

void OptimizerWalk::allocate_states() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].needs_grad()) continue;  // frozen
    a_.operation = first_operation_ + static_cast<timeline::OperationId>(i);
    make_state(i);
  }
}

void OptimizerWalk::count_step(std::size_t i) {
  if (states_[i].counter) rules::in_place_with_number(a_, states_[i].counter);
}

// Torch's optimizers know nothing of micro-batches: the mean is taken on the gradients.
void OptimizerWalk::scale_gradients() {
  if (job_.accumulate == 1) return;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (has_gradient(i)) rules::in_place_with_number(a_, parameters_[i]);
  }
}

// Weight decay, the two moments, then denominator = sqrt(v) / c + eps.
void OptimizerWalk::adamw_loop(std::size_t i) {
  const Tensor& p = parameters_[i];
  count_step(i);
  rules::in_place_with_number(a_, p);
  make_state(i);
  const State& state = states_[i];
  // The Python loop updates the first moment with lerp, which takes its weight without a tensor.
  if (job_.optimizer_impl == OptimizerImpl::kTorchCpp) {
    rules::in_place_with_number(a_, state.first);
  }
  rules::in_place_with_number(a_, state.second);
  Tensor root = rules::empty_like(a_, state.second);
  Tensor denominator = rules::with_number(a_, root);
  // A C++ temporary lives to the end of its expression, a Python one only until it was used.
  if (job_.optimizer_impl == OptimizerImpl::kTorchPython) root.reset();
  rules::in_place_with_number(a_, denominator);
  // A Python variable keeps its value until the next parameter's replaces it.
  if (job_.optimizer_impl == OptimizerImpl::kTorchPython) denominator_ = std::move(denominator);
}

// Weight decay makes a new gradient; the momentum buffer starts as its clone.
void OptimizerWalk::sgd_loop(std::size_t i) {
  const Tensor& p = parameters_[i];
  const Tensor decayed = rules::empty_like(a_, p);
  if (job_.optimizer != Optimizer::kSgdMomentum) return;
  const bool first = !states_[i].made;
  make_state(i);
  if (!first) rules::in_place_with_number(a_, states_[i].first);
}

// One temporary of every parameter at once: AdamW's denominators, or SGD's decayed gradients.
void OptimizerWalk::list_step() {
  std::vector<Tensor> temporaries;
  temporaries.reserve(parameters_.size());
  const bool adamw = job_.optimizer == Optimizer::kAdamW;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!has_gradient(i)) continue;
    a_.operation = first_operation_ + static_cast<timeline::OperationId>(i);
    temporaries.push_back(rules::empty_like(a_, adamw ? states_[i].second : parameters_[i]));
  }
  if (job_.optimizer != Optimizer::kSgdMomentum) return;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!has_gradient(i)) continue;
    a_.operation = first_operation_ + static_cast<timeline::OperationId>(i);
    make_state(i);  // at the first step a clone of the decayed gradient
  }
}

void OptimizerWalk::step() {
  a_.tag = Tag::kWorkspace;
  const bool torch_loop = job_.optimizer_impl != OptimizerImpl::kPlimsoll;
  if (!torch_loop) return;
  scale_gradients();
  // Python's AdamW makes all states before it updates anything.
  if (job_.optimizer == Optimizer::kAdamW && job_.optimizer_impl != OptimizerImpl::kTorchCpp) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (has_gradient(i)) make_state(i);
    }
  }
  if (job_.optimizer_impl == OptimizerImpl::kTorchPython && a_.facts.optimizer_lists) {
    list_step();
    return;
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!has_gradient(i)) continue;
    a_.operation = first_operation_ + static_cast<timeline::OperationId>(i);
    if (job_.optimizer_impl == OptimizerImpl::kTorchFused) {
      count_step(i);
    } else if (job_.optimizer == Optimizer::kAdamW) {
      adamw_loop(i);
    } else {
      sgd_loop(i);
    }
  }
  denominator_.reset();
}

}  // namespace plimsoll::plan
