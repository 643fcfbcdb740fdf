#include "plimsoll/comm/shared/exchange.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "plimsoll/comm/sum.hpp"

namespace plimsoll::comm {
namespace {

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

std::byte* out(const Call& call) { return static_cast<std::byte*>(call.output.data); }
const std::byte* in(const Call& call) { return static_cast<const std::byte*>(call.input.data); }

}  // namespace

Exchange::Exchange(const Channel& channel, const Call& call, std::vector<Posting> postings,
                   std::uint64_t round, const Wait& wait)
    : channel_(channel),
      call_(call),
      postings_(std::move(postings)),
      wait_(wait),
      me_(channel.me()),
      size_(channel.size()),
      round_(round) {}

std::uint64_t Exchange::run() {
  switch (call_.kind) {
    case Kind::kAllGather:
      all_gather();
      break;
    case Kind::kReduceScatter:
      reduce_scatter();
      break;
    case Kind::kAllReduce:
      all_reduce();
      break;
    case Kind::kBroadcast:
      broadcast();
      break;
    case Kind::kBarrier:
      end_round();
      break;
  }
  return round_;
}

Slice Exchange::Chunks::at(std::int64_t round) const {
  const std::int64_t begin = round * each;
  return {begin, std::min(each, count - begin)};
}

Exchange::Chunks Exchange::chunks(std::int64_t count, std::int64_t size, std::int64_t slot_share,
                                  bool direct) {
  if (direct) return {count, count};
  const std::int64_t each = slot_share / size / 64 * 64;  // whole cache lines
  return {count, std::max<std::int64_t>(each, 1)};
}

bool Exchange::all_inside(std::int64_t Posting::*offset) const {
  return std::all_of(postings_.begin(), postings_.end(),
                     [&](const Posting& one) { return one.*offset != Segment::kOutside; });
}

bool Exchange::inside(std::int64_t Posting::*offset) const {
  return postings_[static_cast<std::size_t>(me_)].*offset != Segment::kOutside;
}

const std::byte* Exchange::direct_input(int member) const {
  const std::int64_t offset = postings_[static_cast<std::size_t>(member)].input;
  return offset == Segment::kOutside ? nullptr : channel_.segment().at(offset);
}

void Exchange::open_slots() const {
  if (round_ >= 2) channel_.await_all(&MemberControl::done, round_ - 1, wait_);
}

void Exchange::end_round() { channel_.publish(&MemberControl::done, ++round_); }

// `read_directly`: others have read this member's own memory, which must not change before.
void Exchange::end(bool read_directly) const {
  if (read_directly) channel_.await_all(&MemberControl::done, round_, wait_);
}

// Everybody begins with its own piece and goes round, so that not all read from one at a time.
void Exchange::all_gather() {
  const auto first = postings_.front().output;
  const bool common = first != Segment::kOutside &&
                      std::all_of(postings_.begin(), postings_.end(),
                                  [&](const Posting& one) { return one.output == first; });
  if (common) return gather_into_common();
  const bool staged = !inside(&Posting::input);
  const Chunks parts = chunks(call_.input.bytes(), 1, kSlotBytes, all_inside(&Posting::input));
  for (std::int64_t i = 0; i < parts.rounds(); ++i) {
    const Slice part = parts.at(i);
    if (staged) {
      open_slots();
      copy_bytes(channel_.input_slot(me_, round_), in(call_) + part.begin, part.count);
      channel_.publish(&MemberControl::staged, round_ + 1);
    }
    for (int k = 0; k < size_; ++k) {
      const int member = (me_ + k) % size_;
      std::byte* to = out(call_) + parts.count * member + part.begin;
      const std::byte* direct = member == me_ ? in(call_) : direct_input(member);
      if (direct == nullptr) channel_.await(member, &MemberControl::staged, round_ + 1, wait_);
      copy_bytes(to, direct == nullptr ? channel_.input_slot(member, round_) : direct + part.begin,
                 part.count);
    }
    end_round();
  }
  end(!staged);
}

void Exchange::gather_into_common() {
  copy_bytes(out(call_) + call_.input.bytes() * me_, in(call_), call_.input.bytes());
  end_round();
  end(true);
}

template <class PieceOf>
void Exchange::stage_pieces(PieceOf&& piece_of, std::int64_t block_bytes) const {
  open_slots();
  const std::int64_t element = size_of(call_.input.dtype);
  for (int member = 0; member < size_; ++member) {
    if (member == me_) continue;
    const Slice piece = piece_of(member);
    copy_bytes(channel_.input_slot(me_, round_) + block_bytes * member,
               in(call_) + piece.begin * element, piece.count * element);
  }
  channel_.publish(&MemberControl::staged, round_ + 1);
}

void Exchange::sum(Slice part, std::int64_t block_bytes, void* output) const {
  std::array<const void*, kMaxRanks> sources{};
  for (int member = 0; member < size_; ++member) {
    const std::byte* direct = member == me_ ? in(call_) : direct_input(member);
    if (direct == nullptr) {
      channel_.await(member, &MemberControl::staged, round_ + 1, wait_);
      sources[static_cast<std::size_t>(member)] =
          channel_.input_slot(member, round_) + block_bytes * me_;
    } else {
      sources[static_cast<std::size_t>(member)] = direct + part.begin * size_of(call_.input.dtype);
    }
  }
  sum_in_rank_order(std::span(sources).first(static_cast<std::size_t>(size_)), part.count,
                    call_.input.dtype, output);
}

void Exchange::reduce_scatter() {
  const std::int64_t piece = call_.output.count;
  const std::int64_t element = size_of(call_.input.dtype);
  const bool staged = !inside(&Posting::input);
  const Chunks parts = chunks(piece, element, kSlotBytes / size_, all_inside(&Posting::input));
  for (std::int64_t i = 0; i < parts.rounds(); ++i) {
    const Slice part = parts.at(i);
    const auto piece_of = [&](int member) {
      return Slice{piece * member + part.begin, part.count};
    };
    if (staged) stage_pieces(piece_of, parts.each * element);
    sum(piece_of(me_), parts.each * element, out(call_) + part.begin * size_of(call_.output.dtype));
    end_round();
  }
  end(!staged);
}

template <class PieceOf>
void Exchange::collect_sums(PieceOf&& piece_of) const {
  const std::int64_t result = size_of(call_.output.dtype);
  for (int k = 1; k < size_; ++k) {
    const int member = (me_ + k) % size_;
    const Slice theirs = piece_of(member);
    channel_.await(member, &MemberControl::summed, round_ + 1, wait_);
    const std::int64_t output = postings_[static_cast<std::size_t>(member)].output;
    copy_bytes(out(call_) + theirs.begin * result,
               output == Segment::kOutside ? channel_.sum_slot(member, round_)
                                           : channel_.segment().at(output) + theirs.begin * result,
               theirs.count * result);
  }
}

// Round i handles part i of every slice [Note: Slices]: sum the own one, then take the others' sums.
void Exchange::all_reduce() {
  const std::int64_t element = size_of(call_.input.dtype);
  const std::int64_t result = size_of(call_.output.dtype);
  const bool staged = !inside(&Posting::input);
  const bool private_output = !inside(&Posting::output);
  const std::int64_t share = std::min(kSlotBytes / size_, kSlotBytes / result * element);
  const Chunks parts = chunks(slice_of(call_.input.count, 0, size_).count, element, share,
                              all_inside(&Posting::input) && all_inside(&Posting::output));
  const auto piece_of = [&](std::int64_t index, int member) {
    const Slice slice = slice_of(call_.input.count, member, size_);
    const Slice part = parts.at(index);
    const std::int64_t begin = std::min(part.begin, slice.count);
    return Slice{slice.begin + begin, std::min(part.count, slice.count - begin)};
  };
  for (std::int64_t i = 0; i < parts.rounds(); ++i) {
    if (staged) stage_pieces([&](int member) { return piece_of(i, member); }, parts.each * element);
    const Slice own = piece_of(i, me_);
    sum(own, parts.each * element, out(call_) + own.begin * result);
    if (private_output) {
      open_slots();
      copy_bytes(channel_.sum_slot(me_, round_), out(call_) + own.begin * result,
                 own.count * result);
    }
    channel_.publish(&MemberControl::summed, round_ + 1);
    collect_sums([&](int member) { return piece_of(i, member); });
    end_round();
  }
  end(!staged || !private_output);
}

void Exchange::broadcast() {
  const std::byte* direct = direct_input(call_.root);
  const bool root = me_ == call_.root;
  const Chunks parts = chunks(call_.input.bytes(), 1, kSlotBytes, direct != nullptr);
  for (std::int64_t i = 0; i < parts.rounds(); ++i) {
    const Slice part = parts.at(i);
    if (root && direct == nullptr) {
      open_slots();
      copy_bytes(channel_.input_slot(me_, round_), in(call_) + part.begin, part.count);
      channel_.publish(&MemberControl::staged, round_ + 1);
    }
    if (!root && direct == nullptr) {
      channel_.await(call_.root, &MemberControl::staged, round_ + 1, wait_);
    }
    if (!root) {
      copy_bytes(out(call_) + part.begin,
                 direct == nullptr ? channel_.input_slot(call_.root, round_) : direct + part.begin,
                 part.count);
    }
    end_round();
  }
  end(root && direct != nullptr);
}

}  // namespace plimsoll::comm
