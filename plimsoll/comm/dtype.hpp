// Element types that ranks exchange, and views of memory that holds them.
//
// The room knows bytes and element types only; tensors and networks are above it, and map their own
// types to these. Bool travels as kUInt8.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::comm {

enum class DType : std::uint8_t { kUInt8, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64 };

// Bytes of one element.
constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
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

// What sums of `dtype` are handed out as: 16-bit floats travel as 16 bit, are added in fp32 and are
// never rounded back. kUInt8 cannot be summed.
constexpr DType sum_dtype(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? DType::kFloat32 : dtype;
}

// "fp32", "bf16", "int64", "uint8" ...
std::string_view name(DType dtype);

// `count` elements to read. Owns nothing. `data` may be null for a `fake` communicator alone.
struct ConstView {
  const void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::kUInt8;

  std::int64_t bytes() const { return checked_mul(count, size_of(dtype)); }
};

// `count` elements to write.
struct View {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::kUInt8;

  std::int64_t bytes() const { return checked_mul(count, size_of(dtype)); }
  operator ConstView() const { return {data, count, dtype}; }
};

// The type of C++ numbers. 16-bit floats have none and are viewed by hand.
template <class T>
constexpr DType dtype_of() {
  using Number = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Number, float>) {
    return DType::kFloat32;
  } else if constexpr (std::is_same_v<Number, double>) {
    return DType::kFloat64;
  } else if constexpr (std::is_same_v<Number, std::int64_t>) {
    return DType::kInt64;
  } else {
    static_assert(sizeof(Number) == 1, "float, double, int64_t or bytes");
    return DType::kUInt8;
  }
}

template <class T>
auto view(std::span<T> numbers) {
  using Result = std::conditional_t<std::is_const_v<T>, ConstView, View>;
  return Result{numbers.data(), static_cast<std::int64_t>(numbers.size()), dtype_of<T>()};
}

}  // namespace plimsoll::comm
