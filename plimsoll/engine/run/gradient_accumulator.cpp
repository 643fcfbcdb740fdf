#include "plimsoll/engine/run/gradient_accumulator.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "plimsoll/engine/library/allocators.hpp"

namespace plimsoll::engine {
namespace {

class AccumulateHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  AccumulateHook(OptimizedParameter& parameter, at::ScalarType dtype)
      : parameter_(parameter), dtype_(dtype) {}

  void operator()(const at::Tensor& leaf) override {
    const at::NoGradGuard no_grad;
    at::Tensor& gradient = leaf.mutable_grad();
    if (!gradient.defined()) return;
    if (parameter_.accumulator.defined()) {
      add_gradient(parameter_.accumulator, gradient);
    } else {
      const TagScope tag(timeline::Tag::kGradients);
      parameter_.accumulator = gradient.to(dtype_);
    }
    gradient.reset();
  }

 private:
  OptimizedParameter& parameter_;
  const at::ScalarType dtype_;
};

}  // namespace

void accumulate_gradients(std::vector<OptimizedParameter>& parameters, at::ScalarType dtype) {
  for (OptimizedParameter& p : parameters) {
    torch::autograd::impl::set_post_acc_grad_hooks(
        p.parameter, std::make_unique<AccumulateHook>(p, dtype));
  }
}

}  // namespace plimsoll::engine
