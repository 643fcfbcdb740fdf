#include "plimsoll/plan/optimizer_walk.hpp"

#include <utility>

#include "plimsoll/network/rules/kernels.hpp"
#include "plimsoll/plan/optimizer_states.hpp"

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

void OptimizerWalk::make_factors(std::size_t i) {
  const Tensor& p = parameters_[i];
  State& state = states_[i];
  state.counter = make_counter();
  const Factors factors = adafactor_factors(p.shape());
  const auto block = [&](const network::Dims& shape) {
    return a_.empty_strided(shape, network::contiguous_strides(shape), p.dtype(), Tag::kOptimizer);
  };
  state.first = block(factors.rows);
  if (!factors.columns.empty()) state.second = block(factors.columns);
}

void OptimizerWalk::make_8bit_state(std::size_t i) {
  const std::int64_t n = parameters_[i].elements();
  State& state = states_[i];
  const auto block = [&](std::int64_t count, DType dtype) {
    return a_.empty_strided({count}, {1}, dtype, Tag::kOptimizer);
  };
  if (!has_8bit_states(n)) {
    state.first = block(n, DType::kFloat32);
    state.second = block(n, DType::kFloat32);
    return;
  }
  for (Tensor& table : tables_) {
    if (!table) table = block(kTable8bitBytes / 4, DType::kFloat32);
  }
  state.first = block(n, DType::kUInt8);
  state.second = block(n, DType::kUInt8);
  state.first_scales = block(blocks_8bit(n), DType::kFloat32);
  state.second_scales = block(blocks_8bit(n), DType::kFloat32);
}

void OptimizerWalk::make_state(std::size_t i) {
  State& state = states_[i];
  if (state.made) return;
  state.made = true;
  if (job_.optimizer == Optimizer::kAdafactor) return make_factors(i);
  if (job_.optimizer == Optimizer::kAdamW8bit) return make_8bit_state(i);
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
    if (!has_gradient(i)) continue;
    a_.operation = first_operation_ + static_cast<timeline::OperationId>(i);
    rules::in_place_with_number(a_, parameters_[i]);
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

// The means of squares along rows and columns, their outer product, its scale. A norm is a number.
void OptimizerWalk::adafactor_loop(std::size_t i) {
  const Tensor& p = parameters_[i];
  const State& state = states_[i];
  count_step(i);
  a_.scratch({}, p.dtype());  // the parameter's norm
  const bool factored = static_cast<bool>(state.second);
  if (factored) {
    row_mean_ = rules::empty_like(a_, state.first);
    rules::in_place_with_number(a_, row_mean_);
    column_mean_ = rules::empty_like(a_, state.second);
    rules::in_place_with_number(a_, column_mean_);
    Tensor estimate = rules::empty_like(a_, p);
    const Tensor mean = a_.scratch({}, p.dtype());  // of the row factor
    rules::in_place_with_number(a_, mean);
    std::swap(estimate, estimate_);
  } else {
    squared_ = rules::empty_like(a_, p);
    Tensor estimate = rules::empty_like(a_, p);
    std::swap(estimate, estimate_);
  }
  a_.scratch({}, p.dtype());  // the update's norm
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

// Python's AdamW and Adafactor make all states before they update anything.
bool OptimizerWalk::makes_states_first() const {
  if (job_.optimizer == Optimizer::kAdafactor) return true;
  return job_.optimizer == Optimizer::kAdamW && job_.optimizer_impl != OptimizerImpl::kTorchCpp;
}

void OptimizerWalk::update(std::size_t i) {
  if (job_.optimizer_impl == OptimizerImpl::kTorchFused) return count_step(i);
  switch (job_.optimizer) {
    case Optimizer::kAdamW:
      return adamw_loop(i);
    case Optimizer::kAdafactor:
      return adafactor_loop(i);
    case Optimizer::kAdamW8bit:
      return make_state(i);  // then one kernel
    case Optimizer::kSgd:
    case Optimizer::kSgdMomentum:
    case Optimizer::kLion:
      return sgd_loop(i);
  }
}

void OptimizerWalk::step() {
  a_.tag = Tag::kWorkspace;
  const bool others_loop = job_.optimizer_impl != OptimizerImpl::kPlimsoll;
  if (!others_loop) return;
  scale_gradients();
  if (makes_states_first()) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!has_gradient(i)) continue;
      a_.operation = first_operation_ + static_cast<timeline::OperationId>(i);
      make_state(i);
    }
  }
  const bool lists = job_.optimizer != Optimizer::kAdafactor;  // its default is the loop
  if (lists && job_.optimizer_impl == OptimizerImpl::kTorchPython && a_.facts.optimizer_lists) {
    list_step();
    return;
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!has_gradient(i)) continue;
    a_.operation = first_operation_ + static_cast<timeline::OperationId>(i);
    update(i);
  }
  for (Tensor* variable : {&denominator_, &row_mean_, &column_mean_, &squared_, &estimate_}) {
    variable->reset();
  }
}

}  // namespace plimsoll::plan
