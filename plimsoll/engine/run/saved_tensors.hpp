// What one forward pass of a network saves for backward, as libtorch saves it.
#pragma once

#include <vector>

#include "plimsoll/engine/library/saved_tensor_recorder.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/plan/ledger.hpp"

namespace plimsoll::engine {

struct SavedTensors {
  std::vector<SavedTensor> tensors;  // in the order in which they were saved
  plan::Ledger ledger;
};

// Runs one forward pass on `device` (kCPU, or kMeta for a dry run). Without checkpointing only: a
// checkpointed region saves through hooks of its own.
SavedTensors saved_tensors(const network::Network& network, const plan::Job& job,
                           at::Device device);

}  // namespace plimsoll::engine
