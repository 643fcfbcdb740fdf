// The movement of data in one collective, once all members have announced it [Note: Rounds].
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/comm/shared/channel.hpp"

namespace plimsoll::comm {

class Exchange {
 public:
  // `postings`: one per member, of this very collective. `round`: the first round it may use.
  Exchange(const Channel& channel, const Call& call, std::vector<Posting> postings,
           std::uint64_t round, const Wait& wait);

  // Completes the collective for this member; returns the first round of the next one.
  std::uint64_t run();

 private:
  void all_gather();
  void gather_into_common();
  void reduce_scatter();
  void all_reduce();
  void broadcast();

  struct Chunks {
    std::int64_t count = 0;  // elements in all
    std::int64_t each = 0;   // elements of one round
    std::int64_t rounds() const { return (count + each - 1) / each; }
    Slice at(std::int64_t round) const;
  };
  // Rounds of at most `slot_share` bytes of elements of `size` bytes; everything at once if `direct`.
  static Chunks chunks(std::int64_t count, std::int64_t size, std::int64_t slot_share, bool direct);

  bool all_inside(std::int64_t Posting::*offset) const;
  bool inside(std::int64_t Posting::*offset) const;  // this member's
  // Where `member`'s input can be read; null when it is staged.
  const std::byte* direct_input(int member) const;

  // Waits until the slots of this round are free.
  void open_slots() const;
  // Copies what the other members add up: piece_of(member) of the input, into block `member`.
  template <class PieceOf>
  void stage_pieces(PieceOf&& piece_of, std::int64_t block_bytes) const;
  // The sum of `part` of everybody's input.
  void sum(Slice part, std::int64_t block_bytes, void* output) const;
  // Copies the others' sums of this round: piece_of(member) of the output.
  template <class PieceOf>
  void collect_sums(PieceOf&& piece_of) const;
  void end_round();
  void end(bool read_directly) const;

  const Channel& channel_;
  const Call& call_;
  const std::vector<Posting> postings_;
  const Wait& wait_;
  const int me_;
  const int size_;
  std::uint64_t round_;
};

}  // namespace plimsoll::comm
