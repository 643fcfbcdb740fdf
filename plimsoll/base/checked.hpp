// Integer arithmetic that refuses to wrap. All byte and element counts go through these.
#pragma once

#include <cstdint>

#include "plimsoll/base/error.hpp"

namespace plimsoll {

[[noreturn]] inline void throw_overflow() { throw OverflowError("a size leaves 64 bits (9.2e18)"); }

// a * b; throws OverflowError when the product leaves int64.
inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw_overflow();
  return result;
}

// a + b; throws OverflowError when the sum leaves int64.
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw_overflow();
  return result;
}

// The smallest multiple of `multiple` that is not below n; both positive or n = 0. Throws OverflowError.
inline std::int64_t rounded_up(std::int64_t n, std::int64_t multiple) {
  return checked_add(n, multiple - 1) / multiple * multiple;
}

}  // namespace plimsoll
