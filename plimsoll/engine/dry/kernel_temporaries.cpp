#include "plimsoll/engine/dry/kernel_temporaries.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/TypeProperties.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "plimsoll/engine/dry/flavour.hpp"

namespace plimsoll::engine::dry {
namespace {

enum class Rule {
  kCasts,         // operands become the common dtype
  kDivision,      // the same, and integers become the default float
  kNumberAfter,   // the result is divided by a number in place
  kResize,        // the result gets a larger storage
};

struct NamedRule {
  const char* name;
  const char* overload;
  Rule rule;
};

// Only operations whose kernel goes through TensorIterator with promotion.
constexpr NamedRule kRules[] = {
    {"add", "Tensor", Rule::kCasts},
    {"add_", "Tensor", Rule::kCasts},
    {"add", "out", Rule::kCasts},
    {"sub", "Tensor", Rule::kCasts},
    {"sub_", "Tensor", Rule::kCasts},
    {"sub", "out", Rule::kCasts},
    {"mul", "Tensor", Rule::kCasts},
    {"mul_", "Tensor", Rule::kCasts},
    {"mul", "out", Rule::kCasts},
    {"div", "Tensor", Rule::kDivision},
    {"div_", "Tensor", Rule::kDivision},
    {"div", "out", Rule::kDivision},
    {"maximum", "", Rule::kCasts},
    {"minimum", "", Rule::kCasts},
    {"pow", "Tensor_Tensor", Rule::kCasts},
    {"eq", "Tensor", Rule::kCasts},
    {"ne", "Tensor", Rule::kCasts},
    {"lt", "Tensor", Rule::kCasts},
    {"le", "Tensor", Rule::kCasts},
    {"gt", "Tensor", Rule::kCasts},
    {"ge", "Tensor", Rule::kCasts},
    {"addcmul", "", Rule::kCasts},
    {"addcmul_", "", Rule::kCasts},
    {"addcdiv", "", Rule::kCasts},
    {"addcdiv_", "", Rule::kCasts},
    {"lerp", "Tensor", Rule::kCasts},
    {"mean", "dim", Rule::kNumberAfter},
    {"resize_", "", Rule::kResize},
};

const Rule* find_rule(const c10::OperatorHandle& operation) {
  static const auto rules = [] {
    std::unordered_map<c10::OperatorHandle, Rule> map;
    for (const NamedRule& rule : kRules) {
      const auto found = c10::Dispatcher::singleton().findSchema(
          {std::string("aten::") + rule.name, rule.overload});
      if (found) map.emplace(*found, rule.rule);
    }
    return map;
  }();
  const auto found = rules.find(operation);
  return found == rules.end() ? nullptr : &found->second;
}

at::Tensor empty_like_as(const at::Tensor& tensor, at::ScalarType dtype) {
  return at::detail::empty_meta(tensor.sizes(), dtype);
}

// libtorch makes a number as 8 bytes and casts it to the dtype it meets.
void make_number(const at::Tensor& result) {
  const at::Tensor number = scratch(8);
  const at::Tensor cast = scratch(static_cast<std::int64_t>(result.element_size()));
}

// On meta resize_ only notes the new size of the storage.
void give_storage(const at::Tensor& result) {
  const Block* block = block_of(result);
  c10::StorageImpl* storage = result.storage().unsafeGetStorageImpl();
  const auto bytes = static_cast<std::int64_t>(storage->nbytes());
  if (bytes <= (block == nullptr ? 0 : block->bytes)) return;
  storage->set_data_ptr_noswap(storage->allocator()->allocate(storage->nbytes()));
}

}  // namespace

at::Tensor scratch(std::int64_t bytes) { return at::detail::empty_meta({bytes}, at::kByte); }

KernelTemporaries::KernelTemporaries(const c10::OperatorHandle& operation,
                                     const torch::jit::Stack& stack) {
  const Rule* rule = find_rule(operation);
  if (rule == nullptr) return;
  if (*rule == Rule::kResize) after_ = &give_storage;
  if (current_flavour() != Flavour::kCpu) return;
  if (*rule == Rule::kNumberAfter) after_ = &make_number;
  if (*rule == Rule::kCasts) cast_operands(operation.schema(), stack, false);
  if (*rule == Rule::kDivision) cast_operands(operation.schema(), stack, true);
}

void KernelTemporaries::cast_operands(const c10::FunctionSchema& schema,
                                      const torch::jit::Stack& stack, bool division) {
  std::vector<at::Tensor> written, read;
  at::native::ResultTypeState state{};
  const auto values = torch::jit::last(stack, schema.arguments().size());
  for (std::size_t index = 0; index < values.size(); ++index) {
    if (!values[index].isTensor()) continue;
    const c10::Argument& argument = schema.arguments()[index];
    const bool write = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (write) written.push_back(values[index].toTensor());
    if (argument.is_out()) continue;
    read.push_back(values[index].toTensor());
    state = at::native::update_result_type_state(read.back(), state);
  }
  if (std::none_of(read.begin(), read.end(), [](const auto& x) { return x.is_meta(); })) return;
  at::ScalarType common = at::native::result_type(state);
  if (division && c10::isIntegralType(common, true)) common = at::get_default_dtype_as_scalartype();
  // What is read and written is cast twice.
  for (const auto* operands : {&written, &read}) {
    for (const at::Tensor& operand : *operands) {
      if (operand.scalar_type() != common) alive_.push_back(empty_like_as(operand, common));
    }
  }
}

void KernelTemporaries::after(const torch::jit::Stack& stack) const {
  if (after_ != nullptr && stack.back().toTensor().is_meta()) after_(stack.back().toTensor());
}

}  // namespace plimsoll::engine::dry
