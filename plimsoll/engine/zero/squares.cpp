#include "plimsoll/engine/zero/squares.hpp"

#include <array>
#include <cmath>
#include <cstdint>

namespace plimsoll::engine::zero {
namespace {

// Eight sums side by side, so that the compiler may use vectors and still has one order.
template <class Number>
double sum_of_squares(const Number* values, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      sums[static_cast<std::size_t>(lane)] += value * value;
    }
  }
  double total = 0;
  for (double sum : sums) total += sum;
  for (; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    total += value * value;
  }
  return total;
}

}  // namespace

double sum_of_squares(const at::Tensor& values) {
  if (values.is_meta()) return 0;
  if (values.scalar_type() == at::kDouble) {
    return sum_of_squares(values.data_ptr<double>(), values.numel());
  }
  if (values.scalar_type() == at::kBFloat16) {
    return sum_of_squares(values.data_ptr<c10::BFloat16>(), values.numel());
  }
  return sum_of_squares(values.data_ptr<float>(), values.numel());
}

double clip_factor(double norm, double most) {
  if (most <= 0) return 1;
  if (std::isnan(norm)) return norm;
  if (norm <= most) return 1;
  return static_cast<float>(most / norm);
}

}  // namespace plimsoll::engine::zero
