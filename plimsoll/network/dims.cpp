#include "plimsoll/network/dims.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll::network {

void Dims::insert(std::size_t at, std::int64_t value) {
  push_back(0);
  for (std::size_t i = size_ - 1U; i > at; --i) values_[i] = values_[i - 1];
  values_[at] = value;
}

void Dims::erase(std::size_t at) {
  for (std::size_t i = at; i + 1 < size_; ++i) values_[i] = values_[i + 1];
  values_[--size_] = 0;
}

void Dims::resize(std::size_t n, std::int64_t fill) {
  check(n <= kCapacity, "more than five dimensions");
  for (std::size_t i = size_; i < n; ++i) values_[i] = fill;
  for (std::size_t i = n; i < size_; ++i) values_[i] = 0;
  size_ = static_cast<std::uint8_t>(n);
}

Dims contiguous_strides(const Dims& shape) {
  Dims strides = shape;
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step = checked_mul(step, std::max<std::int64_t>(shape[i], 1));
  }
  return strides;
}

bool is_contiguous(const Dims& shape, const Dims& strides) {
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

bool is_dense(const Dims& shape, const Dims& strides) {
  // Dimensions are taken from the innermost outwards: each must begin where the last one ended.
  std::int64_t step = 1;
  std::array<bool, Dims::kCapacity> taken{};
  for (std::size_t round = 0; round < shape.size(); ++round) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (taken[i] || (shape[i] != 1 && strides[i] != step)) continue;
      taken[i] = true;
      step *= shape[i];
      break;
    }
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!taken[i]) return false;
  }
  return true;
}

ViewStrides view_strides(const Dims& shape, const Dims& strides, const Dims& new_shape) {
  if (element_count(shape) == 0) return {true, contiguous_strides(new_shape)};
  // Old dimensions that are contiguous with each other form a chunk; the new dimensions must tile
  // each chunk exactly. Both shapes are walked from the innermost dimension outwards.
  Dims result = new_shape;
  std::size_t left = new_shape.size();  // new dimensions still to place
  std::int64_t base = shape.empty() ? 1 : strides.back();
  std::int64_t chunk = 1;   // elements of the old chunk so far
  std::int64_t placed = 1;  // elements of it that new dimensions cover
  for (std::size_t i = shape.size(); i-- > 0;) {
    chunk *= shape[i];
    const bool ends = i == 0 || (shape[i - 1] != 1 && strides[i - 1] != chunk * base);
    if (!ends) continue;
    while (left > 0 && (placed < chunk || new_shape[left - 1] == 1)) {
      --left;
      result[left] = placed * base;
      placed *= new_shape[left];
    }
    if (placed != chunk) return {};
    if (i > 0) {
      base = strides[i - 1];
      chunk = placed = 1;
    }
  }
  if (shape.empty()) {
    for (; left > 0 && new_shape[left - 1] == 1; --left) result[left - 1] = 1;
  }
  return {left == 0, result};
}

Dims resolve(const Dims& wanted, const Dims& shape) {
  std::int64_t known = 1;
  for (std::int64_t d : wanted) {
    if (d != -1) known = checked_mul(known, d);
  }
  Dims result = wanted;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == -1) result[i] = known == 0 ? 0 : element_count(shape) / known;
  }
  return result;
}

Dims broadcast(const Dims& a, const Dims& b) {
  const std::size_t n = std::max(a.size(), b.size());
  Dims result;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t x = i + a.size() < n ? 1 : a[i + a.size() - n];
    const std::int64_t y = i + b.size() < n ? 1 : b[i + b.size() - n];
    result.push_back(x == 1 ? y : x);
  }
  return result;
}

std::string to_text(const Dims& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

}  // namespace plimsoll::network
