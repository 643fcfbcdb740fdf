#include "plimsoll/comm/mpi/group.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/comm/call.hpp"
#include "plimsoll/comm/mpi/moves.hpp"
#include "plimsoll/comm/private_buffer.hpp"
#include "plimsoll/comm/sum.hpp"

namespace plimsoll::comm {
namespace {

// Memory that a group keeps between collectives: fresh pages cost more than the data's way.
class Scratch {
 public:
  Scratch() = default;
  Scratch(std::vector<Buffer>& pool, std::int64_t bytes) : pool_(&pool), bytes_(bytes) {
    const auto fits = std::find_if(pool.begin(), pool.end(),
                                   [&](const Buffer& one) { return one.bytes() >= bytes; });
    if (fits == pool.end()) {
      buffer_ = private_buffer(bytes);
    } else {
      buffer_ = std::move(*fits);
      pool.erase(fits);
    }
  }
  ~Scratch() { give_back(); }
  Scratch(Scratch&& other) noexcept { *this = std::move(other); }
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(bytes_, other.bytes_);
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  std::byte* data() const { return buffer_.data(); }
  std::int64_t bytes() const { return bytes_; }

 private:
  // At most two pieces stay: more were only needed while several collectives were in flight.
  void give_back() {
    if (pool_ == nullptr || buffer_.data() == nullptr || pool_->size() >= 2) return;
    pool_->push_back(std::move(buffer_));
  }

  std::vector<Buffer>* pool_ = nullptr;
  std::int64_t bytes_ = 0;
  Buffer buffer_;
};

class MpiGroup;

class MpiWork final : public PendingWork {
 public:
  MpiWork(MpiGroup& group, const Call& call, std::uint64_t sequence);
  ~MpiWork() override;
  void finish(Clock::time_point deadline) override;

 private:
  void begin();
  void begin_all_reduce();
  [[noreturn]] void time_out(Clock::time_point begin, Clock::time_point deadline) const;
  void wait_for(MPI_Request& request, Clock::time_point deadline);
  void compare(Clock::time_point deadline);
  void sum_pieces(std::int64_t count, void* output) const;
  void second_half(Clock::time_point deadline);
  Cause cause_here() const;

  MpiGroup& group_;
  const Call call_;
  const std::string unit_;
  const Signature own_;         // what this rank calls
  std::vector<Signature> all_;  // and what everybody calls
  MPI_Request comparing_ = MPI_REQUEST_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
  Scratch whole_;     // all_reduce: the input, padded to whole slices; then the sums
  Scratch received_;  // what the others sent for this rank's sum
  bool done_ = false;
};

// One communicator of MPI and one for the second halves of all_reduce, which begin in waits: each
// sees its collectives in the same order on all ranks.
class MpiGroup final : public CallCommunicator {
 public:
  MpiGroup(MPI_Comm comm, MpiWorld& world, Milliseconds timeout)
      : world_(world), timeout_(timeout) {
    require_mpi(MPI_Comm_dup(comm, &first_), "MPI_Comm_dup");
    require_mpi(MPI_Comm_dup(comm, &second_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(first_, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(second_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(first_, &rank_);
    MPI_Comm_size(first_, &size_);
  }
  // After a failure peers may never free theirs, which is collective; the job ends anyway.
  ~MpiGroup() override {
    if (world_.failed()) return;
    MPI_Comm_free(&first_);
    MPI_Comm_free(&second_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Communicator> split(std::int64_t colour, const Label& label) override;
  void fail(const Cause& cause) noexcept override { world_.fail(cause); }
  Buffer allocate(std::int64_t bytes, Sharing) override { return private_buffer(bytes); }

  MpiWorld& world() { return world_; }
  MPI_Comm first() const { return first_; }
  MPI_Comm second() const { return second_; }
  // The all_reduces in flight, oldest first.
  std::deque<MpiWork*>& two_step() { return two_step_; }
  std::vector<Buffer>& scratch() { return scratch_; }

 protected:
  Work begin_call(const Call& call) override {
    check_call(call, size_, false);
    world_.begin(call);
    return {std::make_unique<MpiWork>(*this, call, sequence_++), timeout_};
  }

 private:
  MpiWorld& world_;
  MPI_Comm first_ = MPI_COMM_NULL;
  MPI_Comm second_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  const Milliseconds timeout_;
  std::uint64_t sequence_ = 0;
  std::deque<MpiWork*> two_step_;
  std::vector<Buffer> scratch_;
};

MpiWork::MpiWork(MpiGroup& group, const Call& call, std::uint64_t sequence)
    : group_(group),
      call_(call),
      unit_(call.label.unit),
      own_(signature_of(call, sequence)),
      all_(static_cast<std::size_t>(group.size())),
      comparing_(mpi_gather(group.first(), &own_, all_.data(), sizeof(own_), false)) {
  begin();
}

// What is nearly there may arrive before the memory goes.
MpiWork::~MpiWork() {
  if (done_) return;
  const auto end = Clock::now() + Milliseconds(20);
  int complete = 0;
  while (complete == 0 && !group_.world().is_deaf() && Clock::now() < end) {
    MPI_Request both[2] = {comparing_, request_};
    MPI_Testall(2, both, &complete, MPI_STATUSES_IGNORE);
    std::this_thread::yield();
  }
  Cause cause = cause_here();
  cause.text = "dropped a collective without waiting for it";
  group_.world().dropped(cause, complete != 0);
}

void MpiWork::begin() {
  const int ranks = group_.size();
  const std::int64_t bytes = call_.input.bytes();
  switch (call_.kind) {
    case Kind::kAllGather: {
      const auto* own = static_cast<std::byte*>(call_.output.data) + bytes * group_.rank();
      request_ = mpi_gather(group_.first(), call_.input.data, call_.output.data, bytes,
                            own == call_.input.data);
      return;
    }
    case Kind::kReduceScatter:
      received_ = Scratch(group_.scratch(), bytes);
      request_ = mpi_all_to_all(group_.first(), call_.input.data, received_.data(), bytes / ranks);
      return;
    case Kind::kAllReduce:
      return begin_all_reduce();
    case Kind::kBroadcast:
      request_ = mpi_broadcast(group_.first(), call_.output.data, bytes, call_.root);
      return;
    case Kind::kBarrier:
      request_ = mpi_barrier(group_.first());
      return;
  }
}

void MpiWork::begin_all_reduce() {
  const int ranks = group_.size();
  const std::int64_t bytes = call_.input.bytes();
  const std::int64_t slice = slice_of(call_.input.count, 0, ranks).count;
  const std::int64_t padded = slice * ranks * size_of(call_.input.dtype);
  whole_ = Scratch(group_.scratch(), padded);
  received_ = Scratch(group_.scratch(), padded);
  std::memcpy(whole_.data(), call_.input.data, static_cast<std::size_t>(bytes));
  std::memset(whole_.data() + bytes, 0, static_cast<std::size_t>(padded - bytes));
  request_ = mpi_all_to_all(group_.first(), whole_.data(), received_.data(), padded / ranks);
  group_.two_step().push_back(this);
}

Cause MpiWork::cause_here() const {
  Cause cause;
  cause.operation = std::string(name(call_.kind));
  cause.unit = unit_;
  cause.step = call_.label.step;
  return cause;
}

void MpiWork::time_out(Clock::time_point begin, Clock::time_point deadline) const {
  Cause cause = cause_here();
  cause.kind = CauseKind::kTimeout;
  cause.text = fmt::format("did not arrive within {:.3g} s",
                           std::chrono::duration<double>(deadline - begin).count());
  group_.world().time_out(cause);
}

// Data move inside MPI_Test alone: as long as they could be on their way, it is called without a
// pause; a late peer is then waited for with pauses. [Note: how a failure is told] in world.hpp
void MpiWork::wait_for(MPI_Request& request, Clock::time_point deadline) {
  const auto begin = Clock::now();
  const std::int64_t moved = std::max(call_.input.bytes(), call_.output.bytes());
  const auto busy_until =
      begin + std::chrono::microseconds(100) + std::chrono::nanoseconds(moved);  // 1 GB/s
  while (true) {
    int complete = 0;
    require_mpi(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
    if (complete != 0) return;
    const auto now = Clock::now();
    if (now >= deadline) time_out(begin, deadline);
    if (now < busy_until) {
      std::this_thread::yield();
      continue;
    }
    if (group_.world().hears_failure()) group_.world().throw_failure();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Before the data are waited for: calls that differ may never be complete.
void MpiWork::compare(Clock::time_point deadline) {
  wait_for(comparing_, deadline);
  const std::optional<Odd> odd = odd_one(all_);
  if (!odd) return;
  const auto call_of = [&](int rank) { return all_[static_cast<std::size_t>(rank)]; };
  const Cause cause = mismatch(odd->reference, call_of(odd->reference), odd->rank,
                               call_of(odd->rank), call_.label.step);
  group_.fail(cause);
  throw Mismatch(cause);
}

void MpiWork::sum_pieces(std::int64_t count, void* output) const {
  std::vector<const void*> sources;
  const std::int64_t piece = received_.bytes() / group_.size();
  for (int r = 0; r < group_.size(); ++r) sources.push_back(received_.data() + r * piece);
  sum_in_rank_order(sources, count, call_.input.dtype, output);
}

void MpiWork::second_half(Clock::time_point deadline) {
  const int ranks = group_.size();
  const std::int64_t slice = slice_of(call_.input.count, 0, ranks).count;
  const std::int64_t bytes = slice * size_of(call_.output.dtype);
  Scratch sums(group_.scratch(), bytes * ranks);
  sum_pieces(slice, sums.data() + bytes * group_.rank());
  whole_ = std::move(sums);
  request_ = mpi_gather(group_.second(), nullptr, whole_.data(), bytes, true);
  wait_for(request_, deadline);
  std::memcpy(call_.output.data, whole_.data(), static_cast<std::size_t>(call_.output.bytes()));
}

void MpiWork::finish(Clock::time_point deadline) {
  if (done_) return;
  group_.world().throw_if_failed();
  if (call_.kind == Kind::kAllReduce) {
    while (group_.two_step().front() != this) group_.two_step().front()->finish(deadline);
  }
  compare(deadline);
  wait_for(request_, deadline);
  if (call_.kind == Kind::kReduceScatter) sum_pieces(call_.output.count, call_.output.data);
  if (call_.kind == Kind::kAllReduce) {
    second_half(deadline);
    group_.two_step().pop_front();
  }
  done_ = true;
}

std::unique_ptr<Communicator> MpiGroup::split(std::int64_t colour, const Label& label) {
  std::vector<std::int64_t> colours(static_cast<std::size_t>(size_));
  all_gather(view(std::span<const std::int64_t>(&colour, 1)), view(std::span(colours)), label)
      .wait();
  const int place = place_of(colour, colours, *this, label);
  MPI_Comm part = MPI_COMM_NULL;
  require_mpi(MPI_Comm_split(first_, place, rank_, &part), "MPI_Comm_split");
  auto group = std::make_unique<MpiGroup>(part, world_, timeout_);
  MPI_Comm_free(&part);
  return group;
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_group(MPI_Comm comm, MpiWorld& world, Milliseconds timeout) {
  return std::make_unique<MpiGroup>(comm, world, timeout);
}

}  // namespace plimsoll::comm
