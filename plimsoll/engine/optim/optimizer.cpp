#include "plimsoll/engine/optim/optimizer.hpp"

#include <cmath>

#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/engine/run/library_calls.hpp"

namespace plimsoll::engine {
namespace {

using plan::OptimizerImpl;
using timeline::Tag;

at::Tensor gradient_of(const OptimizedParameter& p) {
  return p.accumulator.defined() ? p.accumulator : p.parameter.grad();
}

// One pass per parameter, no transient.
class OwnOptimizer final : public Optimizer {
 public:
  OwnOptimizer(std::vector<OptimizedParameter>& parameters, const plan::Job& job,
               const OptimizerSettings& settings)
      : parameters_(parameters),
        kind_(job.optimizer),
        settings_(settings),
        gradient_scale_(1.0 / job.accumulate) {
    const TagScope tag(Tag::kOptimizer);
    const at::ScalarType dtype = scalar_type(job.recipe().state);
    const int moments = plan::moments(kind_);
    for (const OptimizedParameter& p : parameters_) {
      const at::TensorOptions options = p.parameter.options().dtype(dtype).requires_grad(false);
      first_.push_back(moments > 0 ? at::zeros(p.parameter.sizes(), options) : at::Tensor());
      second_.push_back(moments > 1 ? at::zeros(p.parameter.sizes(), options) : at::Tensor());
    }
  }

  void step() override {
    ++step_;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const OptimizedParameter& p = parameters_[i];
      const at::Tensor gradient = gradient_of(p);
      if (!gradient.defined() || p.parameter.is_meta()) continue;
      const bool mixed = p.master.defined();
      const OptimizerRange range{mixed ? p.master : p.parameter.detach(), gradient, first_[i],
                                 second_[i], mixed ? p.parameter.detach() : at::Tensor()};
      update(range);
    }
  }

 private:
  void update(const OptimizerRange& range) {
    switch (kind_) {
      case plan::Optimizer::kAdamW:
        return adamw_step(range, settings_, step_, gradient_scale_);
      case plan::Optimizer::kSgd:
      case plan::Optimizer::kSgdMomentum:
        return sgd_step(range, settings_, gradient_scale_);
      case plan::Optimizer::kLion:
        return lion_step(range, settings_, gradient_scale_);
      case plan::Optimizer::kAdafactor:
      case plan::Optimizer::kAdamW8bit:
        throw InternalError("another library's optimizer");
    }
  }

  std::vector<OptimizedParameter>& parameters_;
  const plan::Optimizer kind_;
  const OptimizerSettings settings_;
  const double gradient_scale_;
  std::int64_t step_ = 0;
  std::vector<at::Tensor> first_;
  std::vector<at::Tensor> second_;
};

// libtorch's optimizers take the mean over micro-batches from us.
void scale_gradients(const std::vector<OptimizedParameter>& parameters, int accumulate) {
  if (accumulate == 1) return;
  const at::NoGradGuard no_grad;
  for (const OptimizedParameter& p : parameters) {
    if (p.parameter.grad().defined()) p.parameter.grad().div_(at::Scalar(double(accumulate)));
  }
}

std::vector<at::Tensor> tensors_of(const std::vector<OptimizedParameter>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const OptimizedParameter& p : parameters) tensors.push_back(p.parameter);
  return tensors;
}

// torch::optim, as C++ users run it.
class TorchCppOptimizer final : public Optimizer {
 public:
  TorchCppOptimizer(std::vector<OptimizedParameter>& parameters, const plan::Job& job,
                    const OptimizerSettings& s)
      : parameters_(parameters), accumulate_(job.accumulate) {
    if (job.optimizer == plan::Optimizer::kAdamW) {
      optimizer_ = std::make_unique<torch::optim::AdamW>(tensors_of(parameters),
                                                         torch::optim::AdamWOptions(s.learning_rate)
                                                             .betas({s.beta1, s.beta2})
                                                             .eps(s.epsilon)
                                                             .weight_decay(s.weight_decay));
      return;
    }
    const double momentum = job.optimizer == plan::Optimizer::kSgdMomentum ? s.beta1 : 0.0;
    optimizer_ = std::make_unique<torch::optim::SGD>(
        tensors_of(parameters),
        torch::optim::SGDOptions(s.learning_rate).momentum(momentum).weight_decay(s.weight_decay));
  }

  void step() override {
    scale_gradients(parameters_, accumulate_);
    optimizer_->step();
  }

 private:
  std::vector<OptimizedParameter>& parameters_;
  const int accumulate_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

// at::_fused_adamw_ with a step counter tensor per parameter, as torch.optim drives it.
class TorchFusedOptimizer final : public Optimizer {
 public:
  TorchFusedOptimizer(std::vector<OptimizedParameter>& parameters, const plan::Job& job,
                      const OptimizerSettings& s)
      : parameters_(parameters), accumulate_(job.accumulate), settings_(s) {}

  void step() override {
    const at::NoGradGuard no_grad;
    scale_gradients(parameters_, accumulate_);
    std::vector<at::Tensor> weights;
    std::vector<at::Tensor> gradients;
    for (const OptimizedParameter& p : parameters_) {
      if (!p.parameter.grad().defined()) continue;
      weights.push_back(p.parameter);
      gradients.push_back(p.parameter.grad());
    }
    if (first_.empty()) make_states(weights);
    for (at::Tensor& counter : counters_) counter.add_(at::Scalar(1.0));
    if (weights.front().is_meta()) return;
    at::_fused_adamw_(weights, gradients, first_, second_, {}, counters_, settings_.learning_rate,
                      settings_.beta1, settings_.beta2, settings_.weight_decay, settings_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false);
  }

 private:
  void make_states(const std::vector<at::Tensor>& weights) {
    const TagScope tag(Tag::kOptimizer);
    for (const at::Tensor& w : weights) {
      counters_.push_back(at::zeros({}, w.options().dtype(at::kFloat).requires_grad(false)));
      first_.push_back(at::zeros_like(w));
      second_.push_back(at::zeros_like(w));
    }
  }

  std::vector<OptimizedParameter>& parameters_;
  const int accumulate_;
  const OptimizerSettings settings_;
  std::vector<at::Tensor> first_;
  std::vector<at::Tensor> second_;
  std::vector<at::Tensor> counters_;
};

// The sequence of operations of Python's torch.optim.AdamW(foreach=False) and SGD.
class TorchPythonOptimizer final : public Optimizer {
 public:
  TorchPythonOptimizer(std::vector<OptimizedParameter>& parameters, const plan::Job& job,
                       const OptimizerSettings& s)
      : parameters_(parameters),
        kind_(job.optimizer),
        accumulate_(job.accumulate),
        settings_(s),
        states_(parameters.size()) {}

  void step() override {
    const at::NoGradGuard no_grad;
    scale_gradients(parameters_, accumulate_);
    ++step_;
    if (kind_ == plan::Optimizer::kAdamW) {
      for (std::size_t i = 0; i < parameters_.size(); ++i) make_state(i);
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!parameters_[i].parameter.grad().defined()) continue;
      kind_ == plan::Optimizer::kAdamW ? adamw(i) : sgd(i);
    }
    denominator_.reset();
  }

 private:
  struct State {
    at::Tensor first, second, counter;
  };

  void make_state(std::size_t i) {
    State& state = states_[i];
    const at::Tensor& p = parameters_[i].parameter;
    if (state.first.defined() || !p.grad().defined()) return;
    const TagScope tag(Tag::kOptimizer);
    state.counter = at::zeros({}, p.options().dtype(at::kFloat).requires_grad(false));
    state.first = at::zeros_like(p);
    state.second = at::zeros_like(p);
  }

  void adamw(std::size_t i) {
    State& s = states_[i];
    at::Tensor p = parameters_[i].parameter;
    const at::Tensor& g = p.grad();
    s.counter.add_(at::Scalar(1.0));
    p.mul_(at::Scalar(1 - settings_.learning_rate * settings_.weight_decay));
    s.first.lerp_(g, at::Scalar(1 - settings_.beta1));
    s.second.mul_(at::Scalar(settings_.beta2));
    s.second.addcmul_(g, g, at::Scalar(1 - settings_.beta2));
    const double steps = static_cast<double>(step_);
    const double correction1 = 1 - std::pow(settings_.beta1, steps);
    const double correction2 = std::sqrt(1 - std::pow(settings_.beta2, steps));
    at::Tensor root = s.second.sqrt();
    at::Tensor denominator = root.div(at::Scalar(correction2));
    root.reset();  // Python drops the operand as soon as the division is done
    denominator.add_(at::Scalar(settings_.epsilon));
    denominator_ = std::move(denominator);
    p.addcdiv_(s.first, denominator_, at::Scalar(-settings_.learning_rate / correction1));
  }

  void sgd(std::size_t i) {
    State& s = states_[i];
    at::Tensor p = parameters_[i].parameter;
    at::Tensor update = p.grad().add(p, at::Scalar(settings_.weight_decay));
    if (kind_ == plan::Optimizer::kSgdMomentum) {
      if (!s.first.defined()) {
        const TagScope tag(Tag::kOptimizer);
        s.first = update.clone();
      } else {
        s.first.mul_(at::Scalar(settings_.beta1)).add_(update);
      }
      update = s.first;
    }
    p.add_(update, at::Scalar(-settings_.learning_rate));
  }

  std::vector<OptimizedParameter>& parameters_;
  const plan::Optimizer kind_;
  const int accumulate_;
  const OptimizerSettings settings_;
  std::int64_t step_ = 0;
  std::vector<State> states_;
  at::Tensor denominator_;  // a Python variable keeps its value until the next one replaces it
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(std::vector<OptimizedParameter>& parameters,
                                          const plan::Job& job, const OptimizerSettings& settings) {
  check(plan::usual_implementation(job.optimizer) == OptimizerImpl::kPlimsoll,
        "another library's optimizer");
  switch (job.optimizer_impl) {
    case OptimizerImpl::kPlimsoll:
      return std::make_unique<OwnOptimizer>(parameters, job, settings);
    case OptimizerImpl::kTorchCpp:
      return std::make_unique<TorchCppOptimizer>(parameters, job, settings);
    case OptimizerImpl::kTorchFused:
      return std::make_unique<TorchFusedOptimizer>(parameters, job, settings);
    case OptimizerImpl::kTorchPython:
      return std::make_unique<TorchPythonOptimizer>(parameters, job, settings);
    case OptimizerImpl::kBitsAndBytes:
      break;
  }
  throw InternalError("optimizer without an implementation");
}

}  // namespace plimsoll::engine
