// What one forward pass of a network saves for backward, as libtorch saves it.
#pragma once

#include <vector>

#include "plimsoll/engine/library/saved_tensor_recorder.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/plan/ledger.hpp"

namespace plimsoll::engine {

// Runs one forward pass on `device` (kCPU, or kMeta for a dry run) and lists what was saved. Without
// checkpointing only: a checkpointed region saves through hooks of its own.
std::vector<SavedTensor> saved_tensors(const network::Network& network, const plan::Job& job,
                                       at::Device device);

// The counting conventions over such a list. The one that needs the model's inputs apart
// (distinct_hf) is not filled in.
plan::Ledger ledger_of(const std::vector<SavedTensor>& saved);

}  // namespace plimsoll::engine
