// The words by which the members of a group tell each other how far they are; they live in the
// segment.
//
// [Note: Rounds] A collective whose inputs all lie in the segment takes one round; else its data
// pass in rounds through staging slots, two per member, used in turn. Rounds are numbered over the
// life of the group. A member stages its part of a round, takes the others' parts, and then counts
// the round as done; a slot is written again when everybody is done with its last use. The counters
// only grow and each has one writer, so a reader compares and never resets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plimsoll/comm/call.hpp"
#include "plimsoll/comm/shared/segment.hpp"

namespace plimsoll::comm {

inline constexpr std::int64_t kSlotBytes = 512 * 1024;
inline constexpr std::int64_t kSlotsPerMember = 4;  // two for inputs, two for sums
inline constexpr std::uint64_t kPostings = 32;      // collectives in flight at most

// What a member announces when it begins a collective.
struct Posting {
  Signature signature;
  std::int64_t input = Segment::kOutside;  // offsets in the segment
  std::int64_t output = Segment::kOutside;
};

struct MemberControl {
  alignas(64) std::atomic<std::uint64_t> posted{0};  // collectives begun
  alignas(64) std::atomic<std::uint64_t> staged{0};  // rounds whose input others may read
  alignas(64) std::atomic<std::uint64_t> summed{0};  // rounds whose sums others may read
  alignas(64) std::atomic<std::uint64_t> done{0};    // rounds of which nothing more is read
  Posting postings[kPostings];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// Offsets inside the block of a group of `members`.
constexpr std::int64_t control_offset(int member) {
  return static_cast<std::int64_t>(sizeof(MemberControl)) * member;
}
constexpr std::int64_t slot_offset(int members, int member, std::int64_t slot) {
  const std::int64_t begin = (control_offset(members) + 4095) / 4096 * 4096;
  return begin + (kSlotsPerMember * member + slot) * kSlotBytes;
}
constexpr std::int64_t block_bytes(int members) { return slot_offset(members, members, 0); }

}  // namespace plimsoll::comm
