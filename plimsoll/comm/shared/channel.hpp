// Telling and awaiting how far the members of a group are.
//
// [Note: Waiting] A wait looks at the counter for some microseconds (briefer when there are more
// ranks than cores), then sleeps on the rank's doorbell, a futex word. Who publishes a counter rings
// those that are asleep. Every 50 ms a sleeper looks for failures and ended peers besides, so that
// not even a lost ring could hang it, and at its deadline it fails the world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/comm/shared/arena.hpp"
#include "plimsoll/comm/shared/control.hpp"
#include "plimsoll/comm/work.hpp"

namespace plimsoll::comm {

// What is being waited for, as errors tell it, and until when.
struct Wait {
  std::string operation;
  std::string unit;
  std::int64_t step = -1;
  Clock::time_point begin;
  Clock::time_point deadline;
};

class Channel {
 public:
  using Counter = std::atomic<std::uint64_t> MemberControl::*;

  // `members`: ranks of the world, in the group's order; `me`: this rank's place among them.
  Channel(std::shared_ptr<Arena> arena, std::int64_t block, std::vector<int> members, int me);

  int me() const { return me_; }
  int size() const { return static_cast<int>(members_.size()); }
  int world_rank(int member) const { return members_[static_cast<std::size_t>(member)]; }
  Segment& segment() const { return arena_->segment(); }
  const std::shared_ptr<Arena>& arena() const { return arena_; }

  MemberControl& control(int member) const;
  // Slots of kSlotBytes [Note: Rounds].
  std::byte* input_slot(int member, std::uint64_t round) const { return slot(member, round % 2); }
  std::byte* sum_slot(int member, std::uint64_t round) const { return slot(member, 2 + round % 2); }

  // Sets this member's counter and wakes those who wait for it.
  void publish(Counter counter, std::uint64_t value) const;
  // Until `member`'s counter has reached `value`; throws the world's first cause.
  void await(int member, Counter counter, std::uint64_t value, const Wait& wait) const;
  void await_all(Counter counter, std::uint64_t value, const Wait& wait) const;

  void throw_if_failed() const;
  // Records the failure, unless there was one before, and throws the first.
  [[noreturn]] void fail(const Cause& cause) const;

 private:
  std::byte* slot(int member, std::uint64_t index) const;
  void sleep(int member, Counter counter, std::uint64_t value, const Wait& wait) const;
  [[noreturn]] void give_up(int member, Counter counter, std::uint64_t value,
                            const Wait& wait) const;
  Cause cause_in(const Wait& wait, CauseKind kind, int member, std::string text) const;

  const std::shared_ptr<Arena> arena_;
  const std::int64_t block_;
  const std::vector<int> members_;
  const int me_;
  const int spins_;
};

}  // namespace plimsoll::comm
