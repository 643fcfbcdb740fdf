// Model state on paper: what ZeRO's formulas say, without padding, gathered units and buffers. Plans
// decide on the timeline; these are for comparison and for the documents.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "plimsoll/shard/stage.hpp"

namespace plimsoll::plan {

// Bytes per parameter of a training recipe with AdamW.
struct StateRecipe {
  std::string_view name;
  double weights = 4;    // divided by R at stage 3
  double gradients = 4;  // from stage 2 on
  double optimizer = 8;  // from stage 1 on; master copies are here
};
// fp32 4+4+8; bf16 2+2+4; zero-paper 2+2+12 (ZeRO, section 3.1: fp16 weights and gradients; fp32
// master, momentum, variance); megatron 2+4+12 (18, or 6+12/R with its distributed optimizer).
std::optional<StateRecipe> state_recipe(std::string_view name);

struct StateBytes {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double total() const { return weights + gradients + optimizer; }
};
// Per rank, for `parameters` parameters over `ranks` ranks.
StateBytes state_bytes(const StateRecipe& recipe, shard::Stage stage, double parameters,
                       std::int32_t ranks);

}  // namespace plimsoll::plan
