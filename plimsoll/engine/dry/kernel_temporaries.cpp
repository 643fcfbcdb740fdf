#include "plimsoll/engine/dry/kernel_temporaries.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/TypeProperties.h>

#include "plimsoll/engine/dry/flavour.hpp"
#include "plimsoll/engine/dry/product_copies.hpp"
#include "plimsoll/engine/library/allocators.hpp"

namespace plimsoll::engine::dry {
namespace {

enum class Rule {
  kCasts,        // operands become the common dtype
  kDivision,     // the same, and integers become the default float
  kSum,          // over dimensions
  kMean,         // over dimensions
  kLoss,         // a loss per element, then its sum or mean
  kNumberAfter,  // `self` is a number, and becomes a tensor after the result is made
  kProduct,      // of matrices
  kBatches,      // of batches of matrices
  kRows,         // the first tensor is read as contiguous rows, or copied
  kGelu,         // the exact fp32 gelu goes through oneDNN, which reorders a foreign layout
  kContiguous,   // operands that are not contiguous are copied
  kWideCopy,     // 16-bit results are computed in an fp32 copy
  kResize,
};

struct NamedRule {
  const char* name;
  const char* overload;
  Rule rule;
};

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
    {"pow", "Scalar", Rule::kNumberAfter},
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
    {"sum", "dim_IntList", Rule::kSum},
    {"mean", "dim", Rule::kMean},
    {"mse_loss", "", Rule::kLoss},
    {"smooth_l1_loss", "", Rule::kLoss},
    {"gather", "", Rule::kWideCopy},
    {"scatter", "src", Rule::kWideCopy},
    {"scatter", "value", Rule::kWideCopy},
    {"scatter_add", "", Rule::kWideCopy},
    {"scatter_", "src", Rule::kWideCopy},
    {"scatter_", "value", Rule::kWideCopy},
    {"scatter_add_", "", Rule::kWideCopy},
    {"mm", "", Rule::kProduct},
    {"addmm", "", Rule::kProduct},
    {"bmm", "", Rule::kBatches},
    {"baddbmm", "", Rule::kBatches},
    {"_log_softmax", "", Rule::kRows},
    {"_log_softmax_backward_data", "", Rule::kRows},
    {"gelu_backward", "", Rule::kGelu},
    {"_softmax", "", Rule::kContiguous},
    {"_log_softmax", "", Rule::kContiguous},
    {"_softmax_backward_data", "", Rule::kContiguous},
    {"_log_softmax_backward_data", "", Rule::kContiguous},
    {"resize_", "", Rule::kResize},
};

const Rule* find_rule(const c10::OperatorHandle& operation) {
  static const auto rules = [] {
    std::unordered_map<c10::OperatorHandle, Rule> map;
    for (const NamedRule& row : kRules) {
      const auto found =
          c10::Dispatcher::singleton().findSchema({std::string("aten::") + row.name, row.overload});
      if (found) map.emplace(*found, row.rule);
    }
    return map;
  }();
  const auto found = rules.find(operation);
  return found == rules.end() ? nullptr : &found->second;
}

// Arguments of one call, by name.
class Arguments {
 public:
  Arguments(const c10::FunctionSchema& schema, const torch::jit::Stack& stack)
      : schema_(schema), values_(torch::jit::last(stack, schema.arguments().size())) {}

  const c10::IValue& operator[](std::string_view name) const {
    return values_[static_cast<std::size_t>(*schema_.argumentIndexWithName(name))];
  }
  const c10::FunctionSchema& schema() const { return schema_; }
  at::ArrayRef<c10::IValue> values() const { return values_; }

  bool has_meta_tensor() const {
    return std::any_of(values_.begin(), values_.end(), [](const c10::IValue& value) {
      return value.isTensor() && value.toTensor().is_meta();
    });
  }

 private:
  const c10::FunctionSchema& schema_;
  at::ArrayRef<c10::IValue> values_;
};

at::Tensor empty_like_as(const at::Tensor& tensor, at::ScalarType dtype) {
  return at::detail::empty_meta(tensor.sizes(), dtype);
}

// What is read and written is cast twice: first what is written, then what is read.
std::vector<at::Tensor> cast_operands(const Arguments& arguments, bool division) {
  std::vector<at::Tensor> written, read, casts;
  at::native::ResultTypeState state{};
  for (std::size_t index = 0; index < arguments.values().size(); ++index) {
    const c10::IValue& value = arguments.values()[index];
    if (!value.isTensor()) continue;
    const c10::Argument& argument = arguments.schema().arguments()[index];
    const bool writes = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (writes) written.push_back(value.toTensor());
    if (argument.is_out()) continue;
    read.push_back(value.toTensor());
    state = at::native::update_result_type_state(read.back(), state);
  }
  at::ScalarType common = at::native::result_type(state);
  if (division && c10::isIntegralType(common, true)) common = at::get_default_dtype_as_scalartype();
  for (const auto* operands : {&written, &read}) {
    for (const at::Tensor& operand : *operands) {
      if (operand.scalar_type() != common) casts.push_back(empty_like_as(operand, common));
    }
  }
  return casts;
}

// A number becomes a tensor of 8 bytes, and that is cast to the dtype it meets.
void make_number(at::ScalarType type, const at::Tensor& meets) {
  const at::Tensor number = scratch(8);
  if (meets.scalar_type() == type) return;
  const at::Tensor cast = scratch(static_cast<std::int64_t>(meets.element_size()));
}

struct Reduction {
  at::Tensor values;
  std::optional<std::vector<std::int64_t>> dims;
  bool keep;
};

// Strides of the result along the dimensions of the sum, innermost first, where neighbours that
// can be walked in one go are one. (TensorIterator does not merge them on meta.)
std::vector<std::int64_t> merged_result_strides(const at::TensorIteratorBase& iterator) {
  const at::IntArrayRef shape = iterator.shape();
  std::vector<std::int64_t> result;
  std::int64_t size = 0;
  std::array<std::int64_t, 2> last{};
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == 1 && shape.size() > 1) continue;
    const std::array<std::int64_t, 2> strides{iterator.strides(0)[dim], iterator.strides(1)[dim]};
    const bool merges = size > 0 && size * last[0] == strides[0] && size * last[1] == strides[1];
    size = merges ? size * shape[dim] : shape[dim];
    if (merges) continue;
    result.push_back(strides[0]);
    last = strides;
  }
  return result;
}

// libtorch's condition: two reduced dimensions outside, which its loops cannot sum in one go.
bool is_summed_in_fp32(const at::TensorIteratorBase& iterator) {
  if (!at::isReducedFloatingType(iterator.common_dtype())) return false;
  const std::vector<std::int64_t> strides = merged_result_strides(iterator);
  return strides.size() >= 2 && strides[0] == 0 && strides[1] == 0;
}

void sum_into(const Reduction& of, const at::Tensor& result) {
  at::OptionalIntArrayRef dims;
  if (of.dims) dims = *of.dims;
  // Casts the values when the result has another dtype.
  const auto iterator =
      at::meta::make_reduction_from_out_ty(of.values, result, dims, of.keep, result.scalar_type());
  if (of.values.numel() == 0 || !is_summed_in_fp32(iterator)) return;
  const at::Tensor sum = empty_like_as(result, at::kFloat);
  const at::Tensor wide = empty_like_as(of.values, at::kFloat);
}

void divided_sum_into(const Reduction& of, const at::Tensor& result) {
  const bool narrow = at::isReducedFloatingType(result.scalar_type());
  const at::Tensor sum = narrow ? empty_like_as(result, at::kFloat) : result;
  sum_into(of, sum);
  make_number(at::kLong, sum);
}

Reduction reduction(const Arguments& arguments) {
  const c10::IValue& dims = arguments["dim"];
  return {arguments["self"].toTensor(),
          dims.isNone() ? std::nullopt : std::optional(dims.toIntVector()),
          arguments["keepdim"].toBool()};
}

// On meta resize_ only notes the new size of the storage.
void give_block(const at::Tensor& tensor) {
  const Block* block = block_of(tensor);
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const auto bytes = static_cast<std::int64_t>(storage->nbytes());
  if (bytes <= (block == nullptr ? 0 : block->bytes)) return;
  storage->set_data_ptr_noswap(storage->allocator()->allocate(storage->nbytes()));
}

void reduce_loss(const at::Tensor& self, std::int64_t how, const at::Tensor& result) {
  if (how == at::Reduction::None) return;
  const Reduction all{empty_like_as(self, self.scalar_type()), std::nullopt, false};
  how == at::Reduction::Mean ? divided_sum_into(all, result) : sum_into(all, result);
}

std::vector<at::Tensor> tensors_of(const Arguments& arguments) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : arguments.values()) {
    if (value.isTensor()) tensors.push_back(value.toTensor());
  }
  return tensors;
}

void make_contiguous(const std::vector<at::Tensor>& operands) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& operand : operands) {
    if (!operand.is_contiguous()) copies.push_back(empty_like_as(operand, operand.scalar_type()));
  }
}

void copy_wide(const at::Tensor& result) {
  if (!at::isReducedFloatingType(result.scalar_type())) return;
  const at::Tensor wide = empty_like_as(result, at::kFloat);
}

bool gelu_reorders(const Arguments& arguments) {
  const at::Tensor gradient = arguments["grad_output"].toTensor();
  const at::Tensor self = arguments["self"].toTensor();
  return arguments["approximate"].toStringRef() == "none" && self.scalar_type() == at::kFloat &&
         self.is_contiguous() && !gradient.is_contiguous();
}

void reorder_gradient(const at::Tensor& result) {
  const auto bytes = result.numel() * static_cast<std::int64_t>(result.element_size());
  const at::Tensor plain = scratch(bytes);
  scratch(bytes);
}

std::function<void(const at::Tensor&)> action_after(Rule rule, const Arguments& arguments) {
  using at::Tensor;
  switch (rule) {
    case Rule::kSum:
      return [of = reduction(arguments)](const Tensor& result) { sum_into(of, result); };
    case Rule::kMean:
      return [of = reduction(arguments)](const Tensor& result) { divided_sum_into(of, result); };
    case Rule::kLoss:
      return [self = arguments["self"].toTensor(), how = arguments["reduction"].toInt()](
                 const Tensor& result) { reduce_loss(self, how, result); };
    case Rule::kNumberAfter:
      return [type = arguments["self"].toScalar().type()](const Tensor& result) {
        make_number(type, result);
      };
    case Rule::kProduct:
    case Rule::kBatches: {
      // Baddbmm and addmm have an addend before the two factors.
      const std::vector<Tensor> tensors = tensors_of(arguments);
      const auto copy = rule == Rule::kProduct ? copy_operands : copy_batched_operands;
      return [x = tensors[tensors.size() - 2], y = tensors.back(), copy](const Tensor& result) {
        copy(x, y, result);
      };
    }
    case Rule::kContiguous:
      return [tensors = tensors_of(arguments)](const Tensor&) { make_contiguous(tensors); };
    case Rule::kRows:
      return [of = arguments.values()[0].toTensor()](const Tensor&) {
        if (!of.is_contiguous()) scratch(of.numel() * static_cast<std::int64_t>(of.element_size()));
      };
    case Rule::kGelu:
      return gelu_reorders(arguments) ? reorder_gradient : std::function<void(const Tensor&)>();
    case Rule::kWideCopy:
      return copy_wide;
    case Rule::kCasts:
    case Rule::kDivision:
    case Rule::kResize:
      break;
  }
  return {};
}

}  // namespace

at::Tensor scratch(std::int64_t bytes) { return at::detail::empty_meta({bytes}, at::kByte); }

void mean_into(const at::Tensor& values, const at::Tensor& result) {
  divided_sum_into({values, std::nullopt, false}, result);
}

KernelTemporaries::KernelTemporaries(const c10::OperatorHandle& operation,
                                     const torch::jit::Stack& stack) {
  const Rule* rule = find_rule(operation);
  if (rule == nullptr) return;
  const Arguments arguments(operation.schema(), stack);
  if (!arguments.has_meta_tensor()) return;
  if (*rule == Rule::kResize) after_ = give_block;
  if (current_flavour() != Flavour::kCpu) return;
  if (*rule == Rule::kCasts) casts_ = cast_operands(arguments, false);
  if (*rule == Rule::kDivision) casts_ = cast_operands(arguments, true);
  if (!after_) after_ = action_after(*rule, arguments);
}

void KernelTemporaries::after(const torch::jit::Stack& stack) const {
  if (after_) after_(stack.back().toTensor());
}

}  // namespace plimsoll::engine::dry
