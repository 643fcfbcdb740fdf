// Quantities that must not be mixed: bytes, floating-point operations, seconds, elements.
//
// Each is an int64 (or a double for Seconds) in a type of its own. Sums and integer multiples are
// checked for overflow; adding bytes to FLOPs does not compile.
#pragma once

#include <compare>
#include <cstdint>

#include "plimsoll/base/checked.hpp"

namespace plimsoll {

template <class Unit>
struct Quantity {
  std::int64_t value = 0;

  constexpr auto operator<=>(const Quantity&) const = default;

  Quantity& operator+=(Quantity other) {
    value = checked_add(value, other.value);
    return *this;
  }
  Quantity& operator-=(Quantity other) {
    value = checked_add(value, -other.value);
    return *this;
  }
  friend Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend Quantity operator*(Quantity a, std::int64_t n) { return {checked_mul(a.value, n)}; }
  friend Quantity operator*(std::int64_t n, Quantity a) { return a * n; }
};

using Bytes = Quantity<struct BytesUnit>;
using Flops = Quantity<struct FlopsUnit>;
using Elements = Quantity<struct ElementsUnit>;

struct Seconds {
  double value = 0;
  constexpr auto operator<=>(const Seconds&) const = default;
};

inline constexpr std::int64_t kKiB = 1024;
inline constexpr std::int64_t kMiB = 1024 * kKiB;
inline constexpr std::int64_t kGiB = 1024 * kMiB;

}  // namespace plimsoll
