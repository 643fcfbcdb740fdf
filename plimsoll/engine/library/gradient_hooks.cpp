#include "plimsoll/engine/library/gradient_hooks.hpp"

#include <utility>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace plimsoll::engine {
namespace {

class Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit Hook(std::function<void(const at::Tensor&)> function) : function_(std::move(function)) {}
  void operator()(const at::Tensor& leaf) override { function_(leaf); }

 private:
  std::function<void(const at::Tensor&)> function_;
};

}  // namespace

void on_gradient(const at::Tensor& leaf, std::function<void(const at::Tensor&)> hook) {
  torch::autograd::impl::set_post_acc_grad_hooks(leaf, std::make_unique<Hook>(std::move(hook)));
}

}  // namespace plimsoll::engine
