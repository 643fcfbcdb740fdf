// Choices that are the same for the same seed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

namespace plimsoll::tests {

class Chooser {
 public:
  explicit Chooser(std::uint64_t seed) : random_(seed) {}
  template <class T>
  T of(std::initializer_list<T> choices) {
    return *(choices.begin() + static_cast<std::ptrdiff_t>(random_() % choices.size()));
  }
  bool chance(std::uint64_t percent) { return random_() % 100 < percent; }

 private:
  std::mt19937_64 random_;
};

}  // namespace plimsoll::tests
