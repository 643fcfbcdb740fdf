#include "plimsoll/comm/mpi/mpi.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <mpi.h>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/error.hpp"
#include "plimsoll/comm/call.hpp"
#include "plimsoll/comm/checked.hpp"
#include "plimsoll/comm/private_buffer.hpp"
#include "plimsoll/comm/sum.hpp"
#include "plimsoll/comm/torchrun.hpp"

namespace plimsoll::comm {
namespace {

void require(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  Cause cause;
  cause.text = fmt::format("{} failed: {}", what, text);
  throw PeerLost(cause);
}

// `bytes` bytes as one element of a type: counts of MPI end at 2 GiB.
class ByteBlock {
 public:
  explicit ByteBlock(std::int64_t bytes) {
    constexpr std::int64_t kPage = 1 << 20;
    const int whole = static_cast<int>(bytes / kPage);
    const int rest = static_cast<int>(bytes % kPage);
    MPI_Datatype page = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(kPage), MPI_BYTE, &page);
    int counts[2] = {whole, rest};
    MPI_Aint places[2] = {0, static_cast<MPI_Aint>(whole * kPage)};
    MPI_Datatype types[2] = {page, MPI_BYTE};
    MPI_Type_create_struct(2, counts, places, types, &type_);
    MPI_Type_commit(&type_);
    MPI_Type_free(&page);
  }
  // Freed types live on until the operations that use them are complete.
  ~ByteBlock() { MPI_Type_free(&type_); }
  ByteBlock(const ByteBlock&) = delete;
  ByteBlock& operator=(const ByteBlock&) = delete;
  MPI_Datatype type() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

MPI_Request gather(MPI_Comm comm, const void* input, void* output, std::int64_t bytes,
                   bool in_place) {
  MPI_Request request = MPI_REQUEST_NULL;
  const void* source = in_place ? MPI_IN_PLACE : input;
  if (bytes <= INT_MAX) {
    const int count = static_cast<int>(bytes);
    require(MPI_Iallgather(source, count, MPI_BYTE, output, count, MPI_BYTE, comm, &request),
            "MPI_Iallgather");
    return request;
  }
  const ByteBlock block(bytes);
  require(MPI_Iallgather(source, 1, block.type(), output, 1, block.type(), comm, &request),
          "MPI_Iallgather");
  return request;
}

MPI_Request all_to_all(MPI_Comm comm, const void* input, void* output, std::int64_t bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (bytes <= INT_MAX) {
    const int count = static_cast<int>(bytes);
    require(MPI_Ialltoall(input, count, MPI_BYTE, output, count, MPI_BYTE, comm, &request),
            "MPI_Ialltoall");
    return request;
  }
  const ByteBlock block(bytes);
  require(MPI_Ialltoall(input, 1, block.type(), output, 1, block.type(), comm, &request),
          "MPI_Ialltoall");
  return request;
}

MPI_Request broadcast(MPI_Comm comm, void* data, std::int64_t bytes, int root) {
  MPI_Request request = MPI_REQUEST_NULL;
  const ByteBlock block(bytes);
  require(MPI_Ibcast(data, 1, block.type(), root, comm, &request), "MPI_Ibcast");
  return request;
}

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

// One communicator of MPI and one for the second halves of all_reduce, which begin in waits: each
// sees its collectives in the same order on all ranks.
class MpiGroup;

class MpiWork final : public PendingWork {
 public:
  MpiWork(MpiGroup& group, const Call& call);
  ~MpiWork() override;
  void finish(Clock::time_point deadline) override;

 private:
  friend class MpiGroup;
  void begin();
  void wait_for(MPI_Request& request, Clock::time_point deadline);
  void sum_pieces(std::int64_t count, void* output) const;
  void second_half(Clock::time_point deadline);
  [[noreturn]] void time_out(Clock::duration waited);

  MpiGroup& group_;
  const Call call_;
  const std::string unit_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  Scratch sent_;      // all_reduce: the input, padded to whole slices
  Scratch received_;  // what the others sent for this rank's sum
  bool done_ = false;
};

class MpiGroup final : public CallCommunicator {
 public:
  MpiGroup(MPI_Comm comm, Milliseconds timeout) : timeout_(timeout) {
    require(MPI_Comm_dup(comm, &first_), "MPI_Comm_dup");
    require(MPI_Comm_dup(comm, &second_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(first_, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(second_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(first_, &rank_);
    MPI_Comm_size(first_, &size_);
  }
  // After a failure peers may never free theirs, which is collective; the job ends anyway.
  ~MpiGroup() override {
    if (failed_) return;
    MPI_Comm_free(&first_);
    MPI_Comm_free(&second_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Communicator> split(std::int64_t colour, const Label& label) override;
  void fail(const Cause& cause) noexcept override {
    if (failed_) return;
    failed_ = true;
    cause_ = cause;
    if (cause_.rank < 0 && cause_.kind != CauseKind::kTimeout) cause_.rank = rank_;
    if (cause_.reporter < 0) cause_.reporter = rank_;
  }
  Buffer allocate(std::int64_t bytes, Sharing) override { return private_buffer(bytes); }

  MPI_Comm first() const { return first_; }
  MPI_Comm second() const { return second_; }
  bool failed() const { return failed_; }
  void throw_if_failed() const {
    if (failed_) throw_cause(cause_);
  }
  // The all_reduces in flight, oldest first.
  std::deque<MpiWork*>& two_step() { return two_step_; }
  std::vector<Buffer>& scratch() { return scratch_; }

 protected:
  Work begin_call(const Call& call) override {
    throw_if_failed();
    check_call(call, size_, false);
    return {std::make_unique<MpiWork>(*this, call), timeout_};
  }

 private:
  MPI_Comm first_ = MPI_COMM_NULL;
  MPI_Comm second_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  const Milliseconds timeout_;
  bool failed_ = false;
  Cause cause_;
  std::deque<MpiWork*> two_step_;
  std::vector<Buffer> scratch_;
};

MpiWork::MpiWork(MpiGroup& group, const Call& call)
    : group_(group), call_(call), unit_(call.label.unit) {
  begin();
}

MpiWork::~MpiWork() {
  if (done_ || group_.failed()) return;
  Cause cause;
  cause.operation = std::string(name(call_.kind));
  cause.unit = unit_;
  cause.step = call_.label.step;
  cause.text = "dropped a collective without waiting for it";
  group_.fail(cause);
}

void MpiWork::begin() {
  const int ranks = group_.size();
  const std::int64_t bytes = call_.input.bytes();
  switch (call_.kind) {
    case Kind::kAllGather: {
      const auto* own = static_cast<std::byte*>(call_.output.data) + bytes * group_.rank();
      request_ = gather(group_.first(), call_.input.data, call_.output.data, bytes,
                        own == call_.input.data);
      return;
    }
    case Kind::kReduceScatter:
      received_ = Scratch(group_.scratch(), bytes);
      request_ = all_to_all(group_.first(), call_.input.data, received_.data(), bytes / ranks);
      return;
    case Kind::kAllReduce: {
      const std::int64_t slice = slice_of(call_.input.count, 0, ranks).count;
      const std::int64_t padded = slice * ranks * size_of(call_.input.dtype);
      sent_ = Scratch(group_.scratch(), padded);
      received_ = Scratch(group_.scratch(), padded);
      std::memcpy(sent_.data(), call_.input.data, static_cast<std::size_t>(bytes));
      std::memset(sent_.data() + bytes, 0, static_cast<std::size_t>(padded - bytes));
      request_ = all_to_all(group_.first(), sent_.data(), received_.data(), padded / ranks);
      group_.two_step().push_back(this);
      return;
    }
    case Kind::kBroadcast:
      request_ = broadcast(group_.first(), call_.output.data, bytes, call_.root);
      return;
    case Kind::kBarrier:
      require(MPI_Ibarrier(group_.first(), &request_), "MPI_Ibarrier");
      return;
  }
}

void MpiWork::time_out(Clock::duration waited) {
  Cause cause;
  cause.kind = CauseKind::kTimeout;
  cause.reporter = group_.rank();
  cause.operation = std::string(name(call_.kind));
  cause.unit = unit_;
  cause.step = call_.label.step;
  cause.text = fmt::format("a rank did not arrive within {:.3g} s",
                           std::chrono::duration<double>(waited).count());
  group_.fail(cause);
  throw Timeout(cause);
}

// Data move inside MPI_Test alone: as long as they could be on their way, it is called without a
// pause; a late peer is then waited for with pauses.
void MpiWork::wait_for(MPI_Request& request, Clock::time_point deadline) {
  const auto begin = Clock::now();
  const std::int64_t moved = std::max(call_.input.bytes(), call_.output.bytes());
  const auto busy_until =
      begin + std::chrono::microseconds(100) + std::chrono::nanoseconds(moved);  // 1 GB/s
  while (true) {
    int complete = 0;
    require(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
    if (complete != 0) return;
    const auto now = Clock::now();
    if (now >= deadline) time_out(deadline - begin);
    if (now < busy_until) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
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
  const Scratch sums(group_.scratch(), bytes * ranks);
  sum_pieces(slice, sums.data() + bytes * group_.rank());
  MPI_Request request = gather(group_.second(), nullptr, sums.data(), bytes, true);
  wait_for(request, deadline);
  std::memcpy(call_.output.data, sums.data(), static_cast<std::size_t>(call_.output.bytes()));
}

void MpiWork::finish(Clock::time_point deadline) {
  if (done_) return;
  group_.throw_if_failed();
  if (call_.kind == Kind::kAllReduce) {
    while (group_.two_step().front() != this) group_.two_step().front()->finish(deadline);
  }
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
  require(MPI_Comm_split(first_, place, rank_, &part), "MPI_Comm_split");
  auto group = std::make_unique<MpiGroup>(part, timeout_);
  MPI_Comm_free(&part);
  return group;
}

// Runs the body; an exception is printed once per failing rank and becomes an exit code.
int run_body(MpiGroup& world, const std::function<int(Communicator&)>& body) {
  Checked checked(world);
  try {
    return body(checked);
  } catch (const InternalError& error) {
    std::fputs(fmt::format("{}\n", error.what()).c_str(), stderr);
    return static_cast<int>(ExitCode::kInternal);
  } catch (const CommError& error) {
    std::fputs(fmt::format("{}\n", error.what()).c_str(), stderr);
    return static_cast<int>(ExitCode::kEnvironment);
  } catch (const std::exception& error) {
    std::fputs(fmt::format("[comm] rank {}: {}\n", world.rank(), error.what()).c_str(), stderr);
    return static_cast<int>(ExitCode::kEnvironment);
  }
}

}  // namespace

bool mpi_is_available() { return true; }

int launch_mpi(int argc, char** argv, const std::function<int(Communicator&)>& body,
               const MpiOptions& options) {
  if (started_by_torchrun() && !started_by_mpi())
    return refuse_torchrun("start the program with mpirun -n R");
  int level = 0;
  require(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
  int code = 0;
  {
    MpiGroup world(MPI_COMM_WORLD, options.timeout);
    code = run_body(world, body);
    if (code == 0 && world.failed()) code = static_cast<int>(ExitCode::kEnvironment);
    if (code != 0) {
      std::fflush(nullptr);
      MPI_Abort(MPI_COMM_WORLD, code);
    }
  }
  MPI_Finalize();
  return code;
}

}  // namespace plimsoll::comm
