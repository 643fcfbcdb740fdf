#include "plimsoll/engine/dry/in_place_sums.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

#include "plimsoll/engine/library/operation_names.hpp"

namespace plimsoll::engine::dry {
namespace {

bool is_addition(const c10::OperatorHandle& operation) {
  static const auto addition =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  return operation == addition;
}

// The engine's own condition. The stack holds the tensor beside the engine.
bool is_held_by_engine_alone(const at::Tensor& sum) {
  return sum.has_storage() && sum.is_non_overlapping_and_dense() && sum.use_count() == 2 &&
         sum.storage().use_count() == 1;
}

bool is_gradient_sum(const at::Tensor& sum) {
  return !at::GradMode::is_enabled() && calling_operation().starts_with(kNodeWrapper) &&
         is_held_by_engine_alone(sum);
}

bool is_mask_of_attention() {
  return calling_operation() == "aten::_scaled_dot_product_attention_math";
}

}  // namespace

bool sum_in_place(const c10::OperatorHandle& operation, torch::jit::Stack& stack) {
  if (!is_addition(operation)) return false;
  constexpr std::size_t arguments = 3;
  const at::Tensor& sum = torch::jit::peek(stack, 0, arguments).toTensor();
  if (!sum.is_meta() || !(is_gradient_sum(sum) || is_mask_of_attention())) return false;
  at::Tensor result = sum;
  result.add_(torch::jit::peek(stack, 1, arguments).toTensor());
  torch::jit::drop(stack, arguments);
  torch::jit::push(stack, std::move(result));
  return true;
}

}  // namespace plimsoll::engine::dry
