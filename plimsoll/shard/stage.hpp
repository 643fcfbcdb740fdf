// The four ways to spread a model's state over R ranks.
#pragma once

#include <cstdint>

namespace plimsoll::shard {

// What is divided by R. Each stage divides what the stage before it divides, and more.
enum class Stage : std::uint8_t {
  kNothing = 0,     // every rank holds everything; gradients are summed (DDP)
  kOptimizer = 1,   // master copies and moments
  kGradients = 2,   // and gradients
  kParameters = 3,  // and parameters, which are gathered unit by unit before use
};

// Whether `ranks` ranks go through the sharded step at all. A world of one rank with a stage takes
// the same path as a larger one.
constexpr bool shards(Stage stage, std::int32_t ranks) {
  return ranks > 1 || stage != Stage::kNothing;
}

}  // namespace plimsoll::shard
