// What happens to memory during a step, as one stream of events. The calculated, the dry-run and
// the measured step all push the same events into a Sink.
//
// Bytes are requested bytes: what the library asked the allocator for, before any rounding.
// Zero-byte allocations are not events. One stream describes one rank.
#pragma once

#include <cstdint>
#include <string_view>

namespace plimsoll::timeline {

// What a block of memory holds. Tags partition the bytes alive: their sums close.
enum class Tag : std::uint8_t {
  kParameters,        // weights that the forward pass reads
  kMasterCopy,        // fp32 weights beside 16-bit ones
  kGradients,         // .grad of leaves, and accumulators over micro-batches
  kOptimizer,         // moments and step counters
  kActivations,       // made by forward and kept for backward, or on the way there
  kBackward,          // gradients of activations in flight, and recomputed activations
  kInputs,            // token ids, targets, images, position tables
  kBuffers,           // module buffers (batch-norm statistics, ...)
  kLogitsAndLoss,     // logits, log-probabilities, loss
  kGathered,          // full parameters of a gathered unit
  kReduce,            // reduction buffers
  kWorkspace,         // scratch of kernels, scalar temporaries
  kLibraryWorkspace,  // cuBLAS and the like
  kSnapshot,          // checkpoint snapshot being written
  kKvCache,           // cached keys and values
  kAssumedWorkspace,  // scratch of kernels whose size is only assumed
  kCount,
};

// The parts of a training step, in order. Forward, loss and backward repeat per micro-batch.
enum class Phase : std::uint8_t {
  kModel,
  kZeroGrad,
  kForward,
  kLoss,
  kBackward,
  kReduce,
  kClip,
  kOptimizer,
  kCount,
};

std::string_view name(Tag tag);
std::string_view name(Phase phase);

using BlockId = std::uint32_t;      // one allocation, unique within a stream
using OperationId = std::uint32_t;  // index into the operation names of the producer

// Which occurrence of a phase: steps and micro-batches count from 0.
struct PhaseKey {
  Phase phase = Phase::kModel;
  std::int32_t step = 0;
  std::int32_t micro_batch = 0;
  bool operator==(const PhaseKey&) const = default;
};

// Receives events in the order in which they happen. Events between end_phase and the next
// begin_phase belong to no phase (a caller drops its logits or its loss there).
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void begin_phase(PhaseKey key) = 0;
  virtual void end_phase() = 0;
  virtual void allocate(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) = 0;
  virtual void release(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) = 0;
  // The block now serves another purpose (an activation gradient was stolen as .grad): no bytes.
  virtual void retag(BlockId block, std::int64_t bytes, Tag from, Tag to) = 0;
};

}  // namespace plimsoll::timeline
