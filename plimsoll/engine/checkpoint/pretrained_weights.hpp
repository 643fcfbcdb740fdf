// Weights that transformers saved as the starting values of a sharded run, at any number of ranks and
// any stage.
#pragma once

#include "plimsoll/checkpoint/pretrained.hpp"
#include "plimsoll/engine/zero/sharder.hpp"

namespace plimsoll::engine {

// Reads what this rank holds (Sharder::held()), widened or rounded to what the optimizer updates, then
// brings the rest where it is read; adapters keep their values. Beside the run's own memory it takes a
// buffer of at most 8 MiB. Collective; between steps. Precondition: `weights` was opened with
// checkpoint::shapes_of(sharder.parameters()). An Error on one rank leaves its values undefined and makes no
// collective call.
Result<void> read_weights(checkpoint::PretrainedWeights& weights, zero::Sharder& sharder);

}  // namespace plimsoll::engine
