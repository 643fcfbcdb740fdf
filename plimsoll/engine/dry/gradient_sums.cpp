#include "plimsoll/engine/dry/gradient_sums.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/node.h>

namespace plimsoll::engine::dry {
namespace {

bool is_addition(const c10::OperatorHandle& operation) {
  static const auto addition =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  return operation == addition;
}

// Between two nodes of a backward pass: there the engine adds, and nothing else does but hooks,
// whose tensors are held elsewhere.
bool engine_is_adding() {
  return !at::GradMode::is_enabled() && torch::autograd::get_current_graph_task_id() != -1 &&
         !torch::autograd::get_current_node();
}

// The engine's own condition. The stack holds the tensor beside the engine.
bool is_held_by_engine_alone(const at::Tensor& sum) {
  return sum.is_meta() && sum.has_storage() && sum.is_non_overlapping_and_dense() &&
         sum.use_count() == 2 && sum.storage().use_count() == 1;
}

}  // namespace

bool sum_gradients_in_place(const c10::OperatorHandle& operation, torch::jit::Stack& stack) {
  if (!is_addition(operation) || !engine_is_adding()) return false;
  constexpr std::size_t arguments = 3;
  const c10::IValue& first = torch::jit::peek(stack, 0, arguments);
  const at::Tensor& sum = first.toTensor();
  if (!is_held_by_engine_alone(sum)) return false;
  at::Tensor result = sum;
  result.add_(torch::jit::peek(stack, 1, arguments).toTensor());
  torch::jit::drop(stack, arguments);
  torch::jit::push(stack, std::move(result));
  return true;
}

}  // namespace plimsoll::engine::dry
