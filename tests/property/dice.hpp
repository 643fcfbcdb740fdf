// Random choices that are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace plimsoll::test {

// Whole numbers and choices from a fixed stream. No std distribution: those differ by library.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto span = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<std::int64_t>(engine_() % span);
  }
  bool coin() { return between(0, 1) == 1; }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  template <class T>
  T pick(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(
        between(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace plimsoll::test
