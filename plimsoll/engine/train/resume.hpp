// What a run writes about itself beside its tensors, and how it goes on from there.
//
// [Note: what may change] Ranks, stage, batch, accumulation, learning rate and its schedule, clipping,
// the number of steps. What has to stay: the model and its element types, the optimizer, and what the
// order of rows depends on: seed, data, token width, sequence, what is held out.
// At the same number of ranks a run goes on bit for bit. At another one dropout draws from new
// streams, by seed, step and rank; everything else is bit-identical, too, and rows go on where they were
// (data/rows.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/checkpoint/manifest.hpp"
#include "plimsoll/engine/train/trainer.hpp"
#include "plimsoll/engine/zero/network_shards.hpp"

namespace plimsoll::engine {

// Of this run, when it has taken `cursor` rows.
checkpoint::RunState run_state(const plan::Job& job, const TrainingOptions& options,
                               const TokenFile& file, std::int64_t cursor,
                               std::int64_t optimizer_steps);

struct Resumed {
  std::int64_t step = 0;          // steps that were made; 0: the run begins anew
  std::int64_t cursor = 0;        // rows that were taken
  std::vector<std::string> told;  // on rank 0: what was found, skipped and why, what has changed
};

// The newest complete and valid checkpoint becomes the state of the run. When there is none, or the folder
// is empty, nothing happens. Collective. Throws TrainingFailed (exit code 2) for a checkpoint of another
// run, std::runtime_error when there are only damaged ones and for files that cannot be read.
Resumed resume(const checkpoint::RunState& now, const TrainingOptions& options,
               zero::NetworkShards& shards);

}  // namespace plimsoll::engine
