// Element types and their sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plimsoll::network {

// Ordered by type promotion: of two operands the later one wins (float16 with bfloat16 is not used).
// 8-bit numbers are stored, never computed with: they are caches of keys and values.
enum class DType : std::uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt64,
  kFloat8,  // e4m3, finite only
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
};

// Bytes of one element.
constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kFloat8:
      return 1;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
    case DType::kFloat64:
      return 8;
  }
  return 0;
}

// "fp32", "bf16", ... as on the command line.
std::string_view name(DType dtype);

// The inverse of name(); also accepts "float32", "bfloat16" ... of config files.
std::optional<DType> parse_dtype(std::string_view text);

}  // namespace plimsoll::network
