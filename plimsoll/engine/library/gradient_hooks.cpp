#include "plimsoll/engine/library/gradient_hooks.hpp"

#include <utility>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>
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

void when_backward_ends(std::function<void()> function) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(function));
}

int running_pass() { return torch::autograd::get_current_graph_task_id(); }

void forget_gradient(const at::Tensor& leaf) {
  torch::autograd::impl::set_post_acc_grad_hooks(leaf, nullptr);
}

}  // namespace plimsoll::engine
