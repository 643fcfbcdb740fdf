// One piece of memory that all ranks of a host see: control words and staging of the world, a record
// of the first failure, and an arena per rank.
//
// [Note: Memory of the segment] 16 KiB to 64 KiB of control words and, per rank, staging of
// 4 x 512 KiB that is touched when inputs outside of the segment travel; a split adds the same for
// its members and keeps it. Arenas are address space (by default as much as the machine has memory,
// per rank): pages exist once a buffer in them was written. Released buffers are used again and not
// given back to the system before the world ends.
//
// For `shm` the memory is a memfd: no name that a crash could leave behind, no limit of /dev/shm.
// For `threads` it is the process's own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plimsoll/comm/error.hpp"

namespace plimsoll::comm {

inline constexpr int kMaxRanks = 256;

// What a rank and the launcher tell the others. Lives in the segment.
struct alignas(64) RankWord {
  // 0: running. Else how it ended, set by the launcher (or by `threads`): see End.
  std::atomic<std::uint32_t> end{0};
  std::atomic<std::uint32_t> returned{0};  // 1: the rank's function has returned by itself
  std::atomic<std::uint32_t> doorbell{0};  // futex word of the rank's waits
  std::atomic<std::uint32_t> asleep{0};    // how many threads of the rank wait on it
  // The last collective the rank began, for whoever has to explain its death. Written by the rank,
  // read by the launcher after its end.
  std::int64_t step = -1;
  char operation[24] = {};
  char unit[48] = {};
};

// RankWord::end
struct End {
  static constexpr std::uint32_t kExited = 0x10000;     // | exit code
  static constexpr std::uint32_t kSignalled = 0x20000;  // | signal
};
// "ended with exit code 3", "killed by signal 9 (Killed)".
std::string describe_end(std::uint32_t end);

// The first Cause of a world; whoever is first writes it.
struct FirstCause {
  std::atomic<std::uint32_t> state{0};  // 0: none, 1: being written, 2: readable
  CauseKind kind = CauseKind::kPeerLost;
  std::int32_t rank = -1;
  std::int32_t reporter = -1;
  std::int64_t step = -1;
  char operation[80] = {};  // also what a step computes: "blocks.11.attn.qkv linear"
  char unit[48] = {};
  char text[400] = {};
};

struct SegmentHeader {
  std::uint64_t magic = 0;
  std::int32_t ranks = 0;
  std::int32_t launcher = 0;  // process id; 0 for `threads`
  std::int64_t bytes = 0;     // of the whole segment
  std::int64_t arena_begin = 0;
  std::int64_t arena_bytes = 0;  // of one rank
  FirstCause cause;
  RankWord rank[kMaxRanks];
};

class Segment {
 public:
  // `arena_bytes` 0: the machine's memory. Throw std::system_error when the system refuses.
  static std::shared_ptr<Segment> in_process(int ranks, std::int64_t arena_bytes);
  static std::shared_ptr<Segment> in_memfd(int ranks, std::int64_t arena_bytes);
  // Maps the segment of an inherited descriptor; null when it holds none of this program's.
  static std::shared_ptr<Segment> attach(int descriptor);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  int ranks() const { return header().ranks; }
  int descriptor() const { return descriptor_; }  // -1 for `threads`
  std::byte* at(std::int64_t offset) const { return base_ + offset; }
  // The offset of `bytes` bytes at `data`, or kOutside.
  static constexpr std::int64_t kOutside = -1;
  std::int64_t offset_of(const void* data, std::int64_t bytes) const;

  // Offset of the world's control block (shared/control.hpp).
  std::int64_t world_block() const;

  // Notes a failure unless there is one, and wakes everybody.
  void fail(const Cause& cause) const noexcept;
  bool failed() const { return header().cause.state.load(std::memory_order_acquire) != 0; }
  // The first failure. Call only when failed().
  Cause cause() const;

  // Wakes the waits of `rank`, or only if there are any; `ring_all` those of everybody.
  void ring(int rank) const noexcept;
  void ring_all() const noexcept;

 private:
  Segment(std::byte* base, std::int64_t bytes, int descriptor)
      : base_(base), bytes_(bytes), descriptor_(descriptor) {}
  static std::shared_ptr<Segment> create(int ranks, std::int64_t arena_bytes, bool memfd);

  std::byte* const base_;
  const std::int64_t bytes_;
  const int descriptor_;
};

}  // namespace plimsoll::comm
