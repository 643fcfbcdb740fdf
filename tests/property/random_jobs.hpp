// Small random models and jobs, the same on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "plimsoll/network/families/families.hpp"
#include "plimsoll/plan/job.hpp"

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

struct RandomJob {
  network::NetworkSpec spec;
  plan::Job job;

  network::Network network() const { return network::build_network(spec, job.build_options()); }
};

// All fields that decide a run, for messages.
std::string to_text(const RandomJob& random);

// A valid spec of any family, with odd sizes and sizes of 1.
network::NetworkSpec random_spec(Dice& dice);

// Calls `check` with `count` valid jobs of all families, precisions, policies, optimizers, backends
// and semantics; each is captured for doctest's messages.
void for_each_random_job(int count, const std::function<void(const RandomJob&)>& check);

}  // namespace plimsoll::test
