#include "plimsoll/comm/shared/group.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/comm/call.hpp"
#include "plimsoll/comm/shared/channel.hpp"
#include "plimsoll/comm/shared/exchange.hpp"

namespace plimsoll::comm {
namespace {

struct InFlight {
  Call call;
  std::string unit;  // what call.label.unit pointed to
};

// The collectives of one group on one rank: what is in flight, and how far the group is.
class Queue {
 public:
  explicit Queue(Channel channel) : channel_(std::move(channel)) {}

  const Channel& channel() const { return channel_; }
  // Announces the call; returns its number. Completes older ones when too many are in flight.
  std::uint64_t post(const Call& call, Milliseconds timeout);
  // Completes all calls up to number `sequence`.
  void finish(std::uint64_t sequence, Clock::time_point deadline);
  // Call number `sequence` will never be waited for. While an exception is on its way that one is the cause,
  // should it get through to the end.
  void drop(std::uint64_t sequence) noexcept;

 private:
  void run_oldest(Clock::time_point deadline);
  std::vector<Posting> read_postings(const InFlight& one) const;
  void note_place(const Call& call) const;
  void throw_if_failed() const {
    if (dropped_) channel_.segment().fail(*dropped_);
    channel_.throw_if_failed();
  }

  const Channel channel_;
  std::deque<InFlight> in_flight_;
  std::uint64_t oldest_ = 0;  // number of the first of in_flight_
  std::uint64_t round_ = 0;
  std::optional<Cause> dropped_;
  std::array<std::uint64_t, kPostings> ends_{};  // the round after call number i, by i % kPostings
};

Wait wait_of(const Call& call, std::string_view unit, Clock::time_point deadline) {
  return {std::string(name(call.kind)), std::string(unit), call.label.step, Clock::now(), deadline};
}

std::uint64_t Queue::post(const Call& call, Milliseconds timeout) {
  throw_if_failed();
  if (in_flight_.size() >= kPostings / 2) run_oldest(Clock::now() + timeout);
  const std::uint64_t sequence = oldest_ + in_flight_.size();
  const std::size_t place = sequence % kPostings;
  // The posting that is overwritten has been read by everybody who is done with its call.
  channel_.await_all(&MemberControl::done, ends_[place],
                     wait_of(call, call.label.unit, Clock::now() + timeout));
  Posting& posting = channel_.control(channel_.me()).postings[place];
  posting.signature = signature_of(call, sequence);
  const bool data = call.kind != Kind::kBarrier;
  const Segment& segment = channel_.segment();
  posting.input = data ? segment.offset_of(call.input.data, call.input.bytes()) : Segment::kOutside;
  posting.output =
      data ? segment.offset_of(call.output.data, call.output.bytes()) : Segment::kOutside;
  note_place(call);
  in_flight_.push_back({call, std::string(call.label.unit)});
  channel_.publish(&MemberControl::posted, sequence + 1);
  return sequence;
}

void Queue::note_place(const Call& call) const {
  RankWord& word = channel_.segment().header().rank[channel_.world_rank(channel_.me())];
  const auto note = [](auto& to, std::string_view text) {
    const std::size_t length = std::min(text.size(), sizeof(to) - 1);
    if (length > 0) std::memcpy(to, text.data(), length);
    to[length] = 0;
  };
  note(word.operation, name(call.kind));
  note(word.unit, call.label.unit);
  word.step = call.label.step;
}

void Queue::finish(std::uint64_t sequence, Clock::time_point deadline) {
  throw_if_failed();
  while (oldest_ <= sequence) run_oldest(deadline);
}

void Queue::run_oldest(Clock::time_point deadline) {
  const InFlight& one = in_flight_.front();
  const Wait wait = wait_of(one.call, one.unit, deadline);
  channel_.await_all(&MemberControl::posted, oldest_ + 1, wait);
  Exchange exchange(channel_, one.call, read_postings(one), round_, wait);
  round_ = exchange.run();
  ends_[oldest_ % kPostings] = round_;
  in_flight_.pop_front();
  ++oldest_;
}

std::vector<Posting> Queue::read_postings(const InFlight& one) const {
  std::vector<Posting> postings;
  const Posting& ours = channel_.control(channel_.me()).postings[oldest_ % kPostings];
  bool agreed = true;
  for (int member = 0; member < channel_.size(); ++member) {
    postings.push_back(channel_.control(member).postings[oldest_ % kPostings]);
    agreed = agreed && postings.back().signature == ours.signature;
  }
  if (agreed) return postings;
  std::vector<Signature> calls;
  for (const Posting& posting : postings) calls.push_back(posting.signature);
  const std::optional<Odd> odd = odd_one(calls);
  check(odd.has_value(), "calls that differ and are equal");
  channel_.fail(mismatch(channel_.world_rank(odd->reference),
                         calls[static_cast<std::size_t>(odd->reference)],
                         channel_.world_rank(odd->rank), calls[static_cast<std::size_t>(odd->rank)],
                         one.call.label.step));
}

void Queue::drop(std::uint64_t sequence) noexcept {
  if (sequence < oldest_ || channel_.segment().failed()) return;
  const InFlight& one = in_flight_[sequence - oldest_];
  Cause cause;
  cause.rank = cause.reporter = channel_.world_rank(channel_.me());
  cause.step = one.call.label.step;
  cause.operation = std::string(name(one.call.kind));
  cause.unit = one.unit;
  cause.text = "dropped a collective without waiting for it";
  if (std::uncaught_exceptions() > 0) {
    dropped_ = cause;
  } else {
    channel_.segment().fail(cause);
  }
}

class QueuedWork final : public PendingWork {
 public:
  // The queue is shared because a Work may outlive its Communicator while an exception unwinds.
  QueuedWork(std::shared_ptr<Queue> queue, std::uint64_t sequence)
      : queue_(std::move(queue)), sequence_(sequence) {}
  ~QueuedWork() override {
    if (!finished_) queue_->drop(sequence_);
  }
  void finish(Clock::time_point deadline) override {
    queue_->finish(sequence_, deadline);
    finished_ = true;
  }

 private:
  const std::shared_ptr<Queue> queue_;
  const std::uint64_t sequence_;
  bool finished_ = false;
};

class Group final : public CallCommunicator {
 public:
  Group(Channel channel, Milliseconds timeout)
      : queue_(std::make_shared<Queue>(std::move(channel))), timeout_(timeout) {}

  int rank() const override { return channel().me(); }
  int size() const override { return channel().size(); }
  std::unique_ptr<Communicator> split(std::int64_t colour, const Label& label) override;
  void fail(const Cause& cause) noexcept override;
  Buffer allocate(std::int64_t bytes, Sharing sharing) override;

 protected:
  Work begin_call(const Call& call) override {
    check_call(call, size(), false);
    const std::uint64_t sequence = queue_->post(call, timeout_);
    return {std::make_unique<QueuedWork>(queue_, sequence), timeout_};
  }

 private:
  const Channel& channel() const { return queue_->channel(); }
  std::vector<std::int64_t> gather_numbers(std::int64_t own, const Label& label);

  const std::shared_ptr<Queue> queue_;
  const Milliseconds timeout_;
};

std::vector<std::int64_t> Group::gather_numbers(std::int64_t own, const Label& label) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
  all_gather(view(std::span<const std::int64_t>(&own, 1)), view(std::span(all)), label).wait();
  return all;
}

// Where the group of `members` has its control block: made by its first member, who tells the rest.
std::int64_t new_block(const Channel& channel, const std::vector<int>& members) {
  const std::int64_t bytes = block_bytes(static_cast<int>(members.size()));
  const std::int64_t offset = channel.arena()->take(bytes);
  for (std::size_t i = 0; i < members.size(); ++i) {
    new (channel.segment().at(offset + control_offset(static_cast<int>(i)))) MemberControl;
  }
  return offset;
}

std::unique_ptr<Communicator> Group::split(std::int64_t colour, const Label& label) {
  const std::vector<std::int64_t> colours = gather_numbers(colour, label);
  for (int member = 0; member < size(); ++member) {
    const auto same =
        std::count(colours.begin(), colours.end(), colours[static_cast<std::size_t>(member)]);
    if (same > 1) continue;
    const Cause cause = lonely(channel().world_rank(member), channel().world_rank(rank()),
                               colours[static_cast<std::size_t>(member)], size(), label);
    channel().fail(cause);
  }
  std::vector<int> places;
  std::vector<int> members;
  for (int member = 0; member < size(); ++member) {
    if (colours[static_cast<std::size_t>(member)] != colour) continue;
    places.push_back(member);
    members.push_back(channel().world_rank(member));
  }
  const bool first = places.front() == rank();
  const std::int64_t own = first ? new_block(channel(), members) : -1;
  const std::int64_t block = gather_numbers(own, label)[static_cast<std::size_t>(places.front())];
  const auto me = std::find(places.begin(), places.end(), rank()) - places.begin();
  return std::make_unique<Group>(
      Channel(channel().arena(), block, std::move(members), static_cast<int>(me)), timeout_);
}

void Group::fail(const Cause& cause) noexcept {
  Cause full = cause;
  const int own = channel().world_rank(rank());
  const RankWord& word = channel().segment().header().rank[own];
  if (full.reporter < 0) full.reporter = own;
  if (full.rank < 0) full.rank = own;
  if (full.operation.empty()) {
    full.operation = word.operation;
    full.unit = word.unit;
    full.step = word.step;
  }
  channel().segment().fail(full);
}

Buffer Group::allocate(std::int64_t bytes, Sharing sharing) {
  if (sharing == Sharing::kOwn) return channel().arena()->allocate(bytes);
  const Label label{"common memory"};
  Buffer own;
  if (rank() == 0) own = channel().arena()->allocate(bytes);
  const std::int64_t offset =
      rank() == 0 ? channel().segment().offset_of(own.data(), bytes) : Segment::kOutside;
  std::byte* data = channel().segment().at(gather_numbers(offset, label).front());
  // Rank 0's last copy gives the memory back; the others' keep the mapping.
  if (rank() == 0) {
    return Buffer({data, [own](std::byte*) {}}, bytes, true);
  }
  return Buffer({data, [segment = channel().arena()->shared_segment()](std::byte*) {}}, bytes,
                true);
}

}  // namespace

std::unique_ptr<Communicator> make_world(std::shared_ptr<Segment> segment, int rank,
                                         Milliseconds timeout) {
  const int ranks = segment->ranks();
  check(ranks >= 2, "a shared world of one rank");
  std::vector<int> members;
  for (int r = 0; r < ranks; ++r) members.push_back(r);
  const std::int64_t block = segment->world_block();
  auto arena = std::make_shared<Arena>(std::move(segment), rank);
  return std::make_unique<Group>(Channel(std::move(arena), block, std::move(members), rank),
                                 timeout);
}

}  // namespace plimsoll::comm
