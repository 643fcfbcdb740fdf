#include "plimsoll/network/dtype.hpp"

#include <array>
#include <utility>

namespace plimsoll::network {

std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kUInt8:
      return "uint8";
    case DType::kInt8:
      return "int8";
    case DType::kInt64:
      return "int64";
    case DType::kFloat8:
      return "fp8";
    case DType::kFloat16:
      return "fp16";
    case DType::kBFloat16:
      return "bf16";
    case DType::kFloat32:
      return "fp32";
    case DType::kFloat64:
      return "fp64";
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, DType>, 13> kNames = {{
      {"bool", DType::kBool},
      {"uint8", DType::kUInt8},
      {"int8", DType::kInt8},
      {"int64", DType::kInt64},
      {"fp8", DType::kFloat8},
      {"fp16", DType::kFloat16},
      {"float16", DType::kFloat16},
      {"bf16", DType::kBFloat16},
      {"bfloat16", DType::kBFloat16},
      {"fp32", DType::kFloat32},
      {"float32", DType::kFloat32},
      {"fp64", DType::kFloat64},
      {"float64", DType::kFloat64},
  }};
  for (const auto& [known, dtype] : kNames) {
    if (known == text) return dtype;
  }
  return std::nullopt;
}

}  // namespace plimsoll::network
