#include "plimsoll/engine/dry/rewrites.hpp"

#include <string>
#include <unordered_map>

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "plimsoll/engine/library/operation_names.hpp"

namespace plimsoll::engine::dry {
namespace {

enum class Kind {
  kSum,      // in place when autograd, attention or linear call it
  kScatter,  // in place when the target is a formula's own
  kLoss,     // in place in the formula of binary_cross_entropy_with_logits
  kCompare,  // the number becomes a tensor
};

struct Rewrite {
  Kind kind;
  c10::OperatorHandle other;
};

struct NamedRewrite {
  const char* from;
  const char* from_overload;
  Kind kind;
  const char* to;
  const char* to_overload;
};

constexpr NamedRewrite kRewrites[] = {
    {"add", "Tensor", Kind::kSum, "add_", "Tensor"},
    {"scatter", "src", Kind::kScatter, "scatter_", "src"},
    {"scatter_add", "", Kind::kScatter, "scatter_add_", ""},
    {"index_add", "", Kind::kScatter, "index_add_", ""},
    {"index_put", "", Kind::kScatter, "index_put_", ""},
    {"sub", "Tensor", Kind::kLoss, "sub_", "Tensor"},
    {"mul", "Tensor", Kind::kLoss, "mul_", "Tensor"},
    {"eq", "Scalar", Kind::kCompare, "eq", "Tensor"},
    {"ne", "Scalar", Kind::kCompare, "ne", "Tensor"},
    {"lt", "Scalar", Kind::kCompare, "lt", "Tensor"},
    {"le", "Scalar", Kind::kCompare, "le", "Tensor"},
    {"gt", "Scalar", Kind::kCompare, "gt", "Tensor"},
    {"ge", "Scalar", Kind::kCompare, "ge", "Tensor"},
};

const Rewrite* find_rewrite(const c10::OperatorHandle& operation) {
  static const auto rewrites = [] {
    std::unordered_map<c10::OperatorHandle, Rewrite> map;
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const NamedRewrite& row : kRewrites) {
      const std::string space = "aten::";
      const auto from = dispatcher.findSchema({space + row.from, row.from_overload});
      const auto to = dispatcher.findSchema({space + row.to, row.to_overload});
      if (from && to) map.emplace(*from, Rewrite{row.kind, *to});
    }
    return map;
  }();
  const auto found = rewrites.find(operation);
  return found == rewrites.end() ? nullptr : &found->second;
}

// Nobody but one variable (or, in some formulas, a list beside it) and the stack holds the tensor.
// With one holder this is the engine's own condition for its sums.
bool has_holders(const at::Tensor& tensor, std::size_t most) {
  return tensor.has_storage() && tensor.is_non_overlapping_and_dense() &&
         tensor.use_count() <= most + 1 && tensor.storage().use_count() == 1;
}

bool is_sum_in_place(const at::Tensor& sum) {
  const std::string_view caller = calling_operation();
  if (caller == "aten::_scaled_dot_product_attention_math" || caller == "aten::linear") return true;
  return !at::GradMode::is_enabled() && caller.starts_with(kNodeWrapper) && has_holders(sum, 1);
}

bool is_formula_of_logits() {
  return outermost_operation() == "BinaryCrossEntropyWithLogitsBackward0";
}

// index_put accumulates into a formula's own zeros; without accumulation it edits a gradient, and
// that is a copy on the CPU, too.
bool is_scatter_in_place(const at::Tensor& target, const c10::IValue& last_argument) {
  const bool overwrites = last_argument.isBool() && !last_argument.toBool();
  return is_inside_node() && !overwrites && has_holders(target, 2);
}

bool applies(Kind kind, const at::Tensor& first, const c10::IValue& last) {
  switch (kind) {
    case Kind::kSum:
      return is_sum_in_place(first);
    case Kind::kScatter:
      return is_scatter_in_place(first, last);
    case Kind::kLoss:
      return is_formula_of_logits() && has_holders(first, 1);
    case Kind::kCompare:
      return true;
  }
  return false;
}

}  // namespace

bool rewrite(const c10::OperatorHandle& operation, torch::jit::Stack& stack) {
  const Rewrite* found = find_rewrite(operation);
  if (found == nullptr) return false;
  const std::size_t arguments = operation.schema().arguments().size();
  const c10::IValue& first = torch::jit::peek(stack, 0, arguments);
  if (!first.toTensor().is_meta() || !applies(found->kind, first.toTensor(), stack.back())) {
    return false;
  }
  if (found->kind == Kind::kCompare) {
    c10::IValue& number = torch::jit::peek(stack, 1, arguments);
    number = at::native::wrapped_scalar_tensor(number.toScalar());
  }
  found->other.callBoxed(stack);
  return true;
}

}  // namespace plimsoll::engine::dry
