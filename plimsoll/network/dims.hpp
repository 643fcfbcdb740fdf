// Shapes and strides: a short list of integers without heap memory.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::network {

// At most five dimensions: repeating grouped heads needs five, nothing here needs more.
class Dims {
 public:
  static constexpr std::size_t kCapacity = 5;

  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) {
    for (std::int64_t v : values) push_back(v);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::int64_t operator[](std::size_t i) const { return values_[i]; }
  std::int64_t& operator[](std::size_t i) { return values_[i]; }
  std::int64_t back() const { return values_[size_ - 1U]; }
  const std::int64_t* begin() const { return values_.data(); }
  const std::int64_t* end() const { return values_.data() + size_; }

  void push_back(std::int64_t value) {
    check(size_ < kCapacity, "more than five dimensions");
    values_[size_++] = value;
  }
  void insert(std::size_t at, std::int64_t value);
  void erase(std::size_t at);
  void resize(std::size_t n, std::int64_t fill = 0);

  friend bool operator==(const Dims& a, const Dims& b) {
    // Unused values are 0, so all of them are compared: without branches, and without a call.
    std::int64_t differences = a.size_ ^ b.size_;
    for (std::size_t i = 0; i < kCapacity; ++i) differences |= a.values_[i] ^ b.values_[i];
    return differences == 0;
  }

 private:
  std::array<std::int64_t, kCapacity> values_{};  // unused ones are 0
  std::uint8_t size_ = 0;
};

// Product of the sizes; 1 for a scalar. Throws OverflowError beyond int64.
inline std::int64_t element_count(const Dims& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n = checked_mul(n, d);
  return n;
}

// Row-major strides; a dimension of size 0 counts as 1.
Dims contiguous_strides(const Dims& shape);
bool is_contiguous(const Dims& shape, const Dims& strides);

// Every element once and without holes, in some order of the dimensions.
bool is_dense(const Dims& shape, const Dims& strides);

// Strides of view(new_shape) of a tensor, or an empty optional-like flag when a copy is needed.
struct ViewStrides {
  bool possible = false;
  Dims strides;
};
ViewStrides view_strides(const Dims& shape, const Dims& strides, const Dims& new_shape);

// Replaces the one -1 of `wanted` by what is left of element_count(shape).
Dims resolve(const Dims& wanted, const Dims& shape);

// Numpy broadcasting of two shapes.
Dims broadcast(const Dims& a, const Dims& b);

// "(2, 64, 128)".
std::string to_text(const Dims& shape);

}  // namespace plimsoll::network
