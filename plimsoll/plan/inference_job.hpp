// Jobs of inference: what they consist of, and what a plan of one rests on.
//
// One forward pass without gradients, of one rank, in plimsoll's own operations: each value dies at its
// last use. Prefill reads B x T tokens and leaves their keys and values in the cache; decode reads one
// token per row, whose keys and values are the last of the S tokens in the cache. Layers with a window
// keep no more tokens than it has. The cache is whole from the start; pages and their tables are not
// counted. Logits are those of the last position, [B, V].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/plan/job.hpp"

namespace plimsoll::plan {

// Whether a pass of inference has no such setting: "--accumulate", "--ranks".
bool is_of_training(std::string_view option);

// Refuses what only training has in a job of inference, and the cache's dtype in one of training.
Result<void> validate_inference(const Job& job, const network::NetworkSpec& spec);

// What a plan of this job rests on beside its settings, one line each; none for training.
std::vector<std::string> inference_assumptions(const Job& job);

}  // namespace plimsoll::plan
