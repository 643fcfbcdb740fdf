#include "plimsoll/engine/dry/rewrites.hpp"

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <unordered_map>

#include "plimsoll/engine/library/operation_names.hpp"

namespace plimsoll::engine::dry {
namespace {

enum class Kind {
  kSum,      // in place when autograd, attention or linear call it
  kScatter,  // in place when the target is a formula's own
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

// One other holder, beside the stack. The engine's own condition for its sums.
bool has_one_holder(const at::Tensor& tensor) {
  return tensor.has_storage() && tensor.is_non_overlapping_and_dense() && tensor.use_count() == 2 &&
         tensor.storage().use_count() == 1;
}

bool is_sum_in_place(const at::Tensor& sum) {
  const std::string_view caller = calling_operation();
  if (caller == "aten::_scaled_dot_product_attention_math" || caller == "aten::linear") return true;
  return !at::GradMode::is_enabled() && caller.starts_with(kNodeWrapper) && has_one_holder(sum);
}

bool applies(Kind kind, const at::Tensor& first) {
  switch (kind) {
    case Kind::kSum:
      return is_sum_in_place(first);
    case Kind::kScatter:
      return is_inside_node() && has_one_holder(first);
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
  if (!first.toTensor().is_meta() || !applies(found->kind, first.toTensor())) return false;
  if (found->kind == Kind::kCompare) {
    c10::IValue& number = torch::jit::peek(stack, 1, arguments);
    number = at::native::wrapped_scalar_tensor(number.toScalar());
  }
  found->other.callBoxed(stack);
  return true;
}

}  // namespace plimsoll::engine::dry
