#include "plimsoll/engine/nccl/nccl.hpp"

#include <cstdio>
#include <cuda_runtime_api.h>
#include <exception>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "plimsoll/base/error.hpp"
#include "plimsoll/comm/call.hpp"
#include "plimsoll/comm/checked.hpp"
#include "plimsoll/comm/private_buffer.hpp"
#include "plimsoll/comm/torchrun.hpp"
#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine {
namespace {

using comm::Call;
using comm::Cause;
using comm::CauseKind;
using comm::Clock;
using comm::DType;
using comm::Kind;
using comm::Label;
using StorePointer = c10::intrusive_ptr<c10d::Store>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

// --- memory -------------------------------------------------------------------------------------

at::ScalarType type_of(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return at::kByte;
    case DType::kInt64:
      return at::kLong;
    case DType::kBFloat16:
      return at::kBFloat16;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat64:
      return at::kDouble;
  }
  throw InternalError("unknown element type");
}

bool on_device(const void* data) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
    cudaGetLastError();  // an unknown pointer is no failure of what comes next
    return false;
  }
  return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
}

// A view as a tensor, where it is.
at::Tensor tensor_of(void* data, std::int64_t count, DType dtype, at::Device device) {
  const at::Device where = on_device(data) ? device : at::Device(at::kCPU);
  return at::from_blob(data, {count}, at::TensorOptions().dtype(type_of(dtype)).device(where));
}

// --- causes in the store ------------------------------------------------------------------------

constexpr const char* kFailure = "failure";

std::vector<std::uint8_t> packed(const Cause& cause) {
  const std::string text =
      fmt::format("{} {} {} {}\n{}\n{}\n{}", static_cast<int>(cause.kind), cause.rank,
                  cause.reporter, cause.step, cause.operation, cause.unit, cause.text);
  return {text.begin(), text.end()};
}

Cause unpacked(const std::vector<std::uint8_t>& bytes) {
  std::istringstream text(std::string(bytes.begin(), bytes.end()));
  Cause cause;
  int kind = 0;
  text >> kind >> cause.rank >> cause.reporter >> cause.step;
  text.ignore();
  cause.kind = static_cast<CauseKind>(kind);
  std::getline(text, cause.operation);
  std::getline(text, cause.unit);
  std::getline(text, cause.text, '\0');
  return cause;
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& thrown) {
    return thrown.what_without_backtrace();
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

// --- the group ----------------------------------------------------------------------------------

class NcclGroup final : public comm::CallCommunicator {
 public:
  // `store` is this group's alone.
  NcclGroup(StorePointer store, int rank, int size, at::Device device, comm::Milliseconds timeout)
      : store_(std::move(store)), rank_(rank), size_(size), device_(device), timeout_(timeout) {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = timeout;
    const auto own = c10::make_intrusive<c10d::PrefixStore>("nccl", store_);
    group_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(own, rank, size, options);
  }
  ~NcclGroup() override {
    try {
      failed_ ? group_->abort() : group_->shutdown();
    } catch (const std::exception&) {
      // The process ends, or the cause is told already.
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<comm::Communicator> split(std::int64_t colour, const Label& label) override;
  void fail(const Cause& cause) noexcept override;
  comm::Buffer allocate(std::int64_t bytes, comm::Sharing) override {
    return comm::private_buffer(bytes);
  }

  c10d::ProcessGroupNCCL& nccl() { return *group_; }
  at::Device device() const { return device_; }
  bool failed() const { return failed_; }
  // Throws what another rank, or this one, has left in the store.
  void look_for_failure();

 protected:
  comm::Work begin_call(const Call& call) override;

 private:
  StorePointer store_;
  const int rank_;
  const int size_;
  const at::Device device_;
  const comm::Milliseconds timeout_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> group_;
  bool failed_ = false;
  Cause cause_;
  int splits_ = 0;
};

void NcclGroup::fail(const Cause& cause) noexcept {
  if (std::exchange(failed_, true)) return;
  try {
    cause_ = cause;
    if (cause_.rank < 0 && cause_.kind != CauseKind::kTimeout) cause_.rank = rank_;
    if (cause_.reporter < 0) cause_.reporter = rank_;
    const std::vector<std::uint8_t> first = store_->compareSet(kFailure, {}, packed(cause_));
    if (!first.empty()) cause_ = unpacked(first);
  } catch (const std::exception&) {
    // Without the store the others end by their own deadlines.
  }
}

void NcclGroup::look_for_failure() {
  if (failed_) comm::throw_cause(cause_);
  Cause lost;
  try {
    if (!store_->check({kFailure})) return;
    cause_ = unpacked(store_->get(kFailure));
  } catch (const std::exception& error) {
    lost.reporter = rank_;
    lost.text = fmt::format("the store is gone: {}", error.what());
    cause_ = lost;
  }
  failed_ = true;
  comm::throw_cause(cause_);
}

// --- one collective -----------------------------------------------------------------------------

class NcclWork final : public comm::PendingWork {
 public:
  NcclWork(NcclGroup& group, const Call& call)
      : group_(group), call_(call), unit_(call.label.unit) {
    begin();
  }
  ~NcclWork() override {
    if (done_ || group_.failed()) return;
    group_.fail(cause_of(CauseKind::kPeerLost, "dropped a collective without waiting for it"));
  }
  void finish(Clock::time_point deadline) override;

 private:
  void begin();
  at::Tensor input() const;
  at::Tensor output() const {
    return tensor_of(call_.output.data, call_.output.count, call_.output.dtype, group_.device());
  }
  // The output itself, or a stand-in for one in host memory.
  at::Tensor result_on_device() const {
    const at::Tensor own = output();
    return own.is_cuda() ? own : at::empty_like(own, own.options().device(group_.device()));
  }
  Cause cause_of(CauseKind kind, std::string text) const;

  NcclGroup& group_;
  const Call call_;
  const std::string unit_;
  at::Tensor sent_;
  at::Tensor result_;
  WorkPointer work_;
  bool done_ = false;
};

Cause NcclWork::cause_of(CauseKind kind, std::string text) const {
  Cause cause;
  cause.kind = kind;
  cause.reporter = group_.rank();
  cause.step = call_.label.step;
  cause.operation = std::string(comm::name(call_.kind));
  cause.unit = unit_;
  cause.text = std::move(text);
  return cause;
}

// On the device, in the type that travels.
at::Tensor NcclWork::input() const {
  // NCCL does not write to inputs.
  void* data = const_cast<void*>(call_.input.data);
  const at::Tensor own = tensor_of(data, call_.input.count, call_.input.dtype, group_.device());
  const bool sums = call_.kind == Kind::kReduceScatter || call_.kind == Kind::kAllReduce;
  const at::ScalarType type = type_of(sums ? call_.output.dtype : call_.input.dtype);
  return own.to(group_.device(), type);
}

void NcclWork::begin() {
  c10d::ProcessGroupNCCL& nccl = group_.nccl();
  switch (call_.kind) {
    case Kind::kAllGather:
      sent_ = input();
      result_ = result_on_device();
      work_ = nccl._allgather_base(result_, sent_);
      return;
    case Kind::kReduceScatter:
      sent_ = input();
      result_ = result_on_device();
      work_ = nccl._reduce_scatter_base(result_, sent_);
      return;
    case Kind::kAllReduce: {
      result_ = result_on_device();
      result_.copy_(input());
      std::vector<at::Tensor> tensors{result_};
      work_ = nccl.allreduce(tensors);
      return;
    }
    case Kind::kBroadcast: {
      result_ = input();
      std::vector<at::Tensor> tensors{result_};
      c10d::BroadcastOptions options;
      options.rootRank = call_.root;
      work_ = nccl.broadcast(tensors, options);
      return;
    }
    case Kind::kBarrier: {
      c10d::BarrierOptions options;
      options.device_ids = {group_.device().index()};
      work_ = nccl.barrier(options);
      return;
    }
  }
}

void NcclWork::finish(Clock::time_point deadline) {
  if (done_) return;
  const auto begin = Clock::now();
  auto next_look = begin + comm::Milliseconds(20);
  while (!work_->isCompleted()) {
    const auto now = Clock::now();
    if (now >= next_look) {
      group_.look_for_failure();
      next_look = now + comm::Milliseconds(20);
    }
    if (now >= deadline) {
      const double seconds = std::chrono::duration<double>(deadline - begin).count();
      group_.fail(cause_of(CauseKind::kTimeout,
                           fmt::format("a rank did not arrive within {:.3g} s", seconds)));
      group_.look_for_failure();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (const std::exception_ptr error = work_->exception()) {
    group_.fail(cause_of(CauseKind::kPeerLost, message_of(error)));
    group_.look_for_failure();
  }
  work_->synchronize();  // later work of the current stream comes after the collective
  const at::Tensor own = result_.defined() ? output() : at::Tensor();
  if (own.defined() && own.data_ptr() != result_.data_ptr()) own.copy_(result_);
  done_ = true;
}

comm::Work NcclGroup::begin_call(const Call& call) {
  if (failed_) comm::throw_cause(cause_);
  comm::check_call(call, size_, false);
  return {std::make_unique<NcclWork>(*this, call), timeout_};
}

std::unique_ptr<comm::Communicator> NcclGroup::split(std::int64_t colour, const Label& label) {
  std::vector<std::int64_t> colours(static_cast<std::size_t>(size_));
  all_gather(comm::view(std::span<const std::int64_t>(&colour, 1)), comm::view(std::span(colours)),
             label)
      .wait();
  const int place = comm::place_of(colour, colours, *this, label);
  int rank = 0;
  int size = 0;
  for (int member = 0; member < size_; ++member) {
    if (colours[static_cast<std::size_t>(member)] != colour) continue;
    if (member < rank_) ++rank;
    ++size;
  }
  const std::string name = fmt::format("split{}.{}", splits_++, place);
  const auto store = c10::make_intrusive<c10d::PrefixStore>(name, store_);
  return std::make_unique<NcclGroup>(store, rank, size, device_, timeout_);
}

// --- start --------------------------------------------------------------------------------------

void say(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

StorePointer meet(const comm::TorchrunRank& own, comm::Milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(own.port);
  options.isServer = own.rank == 0 && !own.agent_serves;
  options.numWorkers = static_cast<std::size_t>(own.size);
  options.waitWorkers = false;
  options.timeout = timeout;
  const auto store = c10::make_intrusive<c10d::TCPStore>(own.host, options);
  return c10::make_intrusive<c10d::PrefixStore>("plimsoll." + own.attempt, store);
}

int run_body(NcclGroup& world, const std::function<int(comm::Communicator&)>& body) {
  comm::Checked checked(world);
  try {
    return body(checked);
  } catch (const comm::CommError& error) {
    say(error.what());
    return static_cast<int>(ExitCode::kEnvironment);
  } catch (const InternalError& error) {
    world.abort(error.what());
    say(error.what());
    return static_cast<int>(ExitCode::kInternal);
  } catch (const std::exception&) {
    const std::string text = message_of(std::current_exception());
    world.abort(text);
    say(fmt::format("[comm] rank {}: {}", world.rank(), text));
    return static_cast<int>(ExitCode::kEnvironment);
  }
}

}  // namespace

bool nccl_is_available() { return true; }

int launch_nccl(const std::function<int(comm::Communicator&)>& body, const NcclOptions& options) {
  const auto own = comm::torchrun_rank();
  if (!own) {
    say(format_error(own.error()));
    return static_cast<int>(own.error().code);
  }
  const int devices =
      torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
  if (own->local_rank >= devices) {
    say(fmt::format("[nccl] CUDA devices={} on this host, expected more than LOCAL_RANK={}",
                    devices, own->local_rank));
    return static_cast<int>(ExitCode::kEnvironment);
  }
  const auto index = static_cast<c10::DeviceIndex>(own->local_rank);
  c10::cuda::set_device(index);
  try {
    NcclGroup world(meet(*own, options.timeout), own->rank, own->size, at::Device(at::kCUDA, index),
                    options.timeout);
    return run_body(world, body);
  } catch (const std::exception&) {
    say("[nccl] " + message_of(std::current_exception()));
    return static_cast<int>(ExitCode::kEnvironment);
  }
}

}  // namespace plimsoll::engine
