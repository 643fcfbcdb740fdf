// The four figures of memory, which are never one: what the library asks for (requested), what its
// allocator hands out (allocated), what the process takes from the card (reserved), and what the card
// shows as used (device used). Per rank, in bytes, at their highest.
//
// On CUDA the libraries' workspaces lie in the caching allocator: `allocated` and `reserved` contain
// them, `requested` does not. device_used = reserved + context. Not known here: what NCCL, cuDNN and
// other processes take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/network/library_facts.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/allocator/allocator_sink.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::plan {

// A figure that may be unknown; then `reason` says why.
struct MaybeBytes {
  std::optional<std::int64_t> bytes;
  std::string reason;
};

// Memory that is no tensor of the model, with what it rests on.
struct MemoryLine {
  std::string name;
  MaybeBytes size;
  network::Evidence evidence = network::Evidence::kSource;
  std::string source;
};

struct Instant {
  timeline::PhaseKey phase;
  std::string operation;  // empty between operations
};

struct OutOfMemoryText {
  Instant at;
  std::int64_t request = 0;
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
};

struct Memory {
  std::int64_t requested = 0;  // the steady step's peak
  MaybeBytes allocated;        // the steady step's peak
  MaybeBytes reserved;         // of the whole run
  MaybeBytes device_used;
  std::optional<Instant> allocated_at;
  std::optional<Instant> reserved_at;
  std::int64_t unused_at_reserved_peak = 0;  // reserved but in no block: fragmentation and cache
  std::vector<MemoryLine> lines;   // workspace, workspace_assumed, library_workspace, context
  std::int64_t assumed_bytes = 0;  // sum of the lines whose evidence is kAssumed
  std::optional<OutOfMemoryText> out_of_memory;
};

// The libraries' workspaces of a run of `network`; none on the CPU.
allocator::LibraryBlocks library_blocks(const network::Network& network, const Job& job);

// Bytes that the allocator may reserve on the job's device.
std::int64_t reservable(const Job& job);

// `allocator`: null on the CPU, whose allocator hands out exactly what is asked for. `steady`: that
// step's peak and its number.
Memory make_memory(const network::Network& network, const Job& job, const timeline::Peak& steady,
                   std::int32_t steady_step, const allocator::AllocatorSink* allocator);

}  // namespace plimsoll::plan
