// The tensors of a sharded run as a checkpoint names them: which this rank writes, and how it reads
// them back at any number of ranks and any stage.
//
// Weights are what the optimizer updates: masters where there are some. 16-bit copies of masters are
// made anew by rounding, as the optimizer makes them. Buffers of modules are those of rank 0, which
// writes them; every rank reads them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plimsoll/checkpoint/manifest.hpp"
#include "plimsoll/checkpoint/reader.hpp"
#include "plimsoll/checkpoint/writer.hpp"
#include "plimsoll/engine/zero/sharder.hpp"

namespace plimsoll::engine {

// One call of Writer::add().
struct SavedPiece {
  std::size_t tensor = 0;  // position in tensors_of()
  checkpoint::StateKind kind = checkpoint::StateKind::kWeight;
  shard::Range elements;  // of the tensor
  at::Tensor data;        // contiguous, of as many elements; the run's own memory
};

// All tensors of the model, tied ones under their first name, then its buffers. The same on all ranks.
std::vector<checkpoint::Tensor> tensors_of(const zero::Sharder& sharder);

// What this rank is to write: over all ranks each element once.
std::vector<SavedPiece> share_of(const zero::Sharder& sharder);

// Copies their data into `memory` one after the other and lets them point there. InternalError when it
// is too small; plan::snapshot_bytes() is enough.
void copy_into(const at::Tensor& memory, std::vector<SavedPiece>& pieces);

// One rank's file, from Writer::open() to finish().
Result<void> write_share(const checkpoint::SavePlan& plan, std::int32_t rank,
                         const std::vector<SavedPiece>& pieces, std::span<const std::byte> random);

// Whether the checkpoint is one of this model in these element types: the first difference.
Result<void> check_tensors(const checkpoint::Manifest& manifest, const zero::Sharder& sharder);

// Reads what this rank holds and the buffers, then brings the rest where it is read. Reads no other
// bytes. Collective; between steps. Precondition: check_tensors(). An Error on one rank leaves its values
// undefined and makes no collective call.
Result<void> read_state(checkpoint::Reader& reader, zero::Sharder& sharder);

}  // namespace plimsoll::engine
