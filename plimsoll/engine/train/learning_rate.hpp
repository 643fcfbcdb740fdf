// The learning rate of each step.
#pragma once

#include <cstdint>
#include <string_view>

namespace plimsoll::engine {

enum class Decay : std::uint8_t { kConstant, kLinear, kCosine };
std::string_view name(Decay decay);

struct LearningRate {
  double peak = 0;
  Decay decay = Decay::kCosine;
  std::int64_t warm_up = 0;  // W, steps; below `steps`
  std::int64_t steps = 1;    // N, of the run

  // Step s from 0: peak (s + 1) / W while s < W. Then peak times 1, 1 - x, or (1 + cos(pi x)) / 2 with
  // x = (s - W) / (N - W): the first step after warm-up has the peak, the last one is above 0.
  double at(std::int64_t step) const;
};

}  // namespace plimsoll::engine
