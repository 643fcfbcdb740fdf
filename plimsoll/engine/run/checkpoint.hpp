// Activation checkpointing of a region: forward keeps only the region's input, backward reruns it.
//
// Non-reentrant, on saved-tensor hooks: packing a tensor returns its number; the first unpack reruns
// the region and keeps what it saves; each kept tensor is dropped at its unpack. One backward pass
// per forward (retain_graph is refused with a message). The region must be deterministic; its random
// numbers are repeated when the state is kept.
#pragma once

#include <functional>
#include <memory>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine {

using RegionBody = std::function<at::Tensor(const at::Tensor& input)>;

// Runs `body(input)` under checkpointing and returns its result. With `keep_random_state` the CPU
// generator's state (5,056 bytes) is kept with the input. Throws what the body throws; backward
// throws std::runtime_error when a rerun saves another number of tensors.
// With `stops_early` a rerun ends with the last tensor that forward saved: what would come after it
// is not computed again.
at::Tensor checkpoint(RegionBody body, at::Tensor input, bool keep_random_state,
                      bool stops_early = false);

// at::linear inside a region that keeps the results of its linear layers: the first run keeps what
// it computes with the region's input, the rerun takes it from there. One autograd node that saves x
// and weight. Throws std::logic_error outside a region.
at::Tensor kept_linear(const at::Tensor& x, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias);

}  // namespace plimsoll::engine
