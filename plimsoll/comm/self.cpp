#include "plimsoll/comm/self.hpp"

#include <cstring>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/comm/call.hpp"
#include "plimsoll/comm/private_buffer.hpp"
#include "plimsoll/comm/sum.hpp"

namespace plimsoll::comm {
namespace {

class Alone final : public CallCommunicator {
 public:
  Alone(int rank, int size, bool fake) : rank_(rank), size_(size), fake_(fake) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  // All members of a fake world give this rank's colour, for want of knowing theirs.
  std::unique_ptr<Communicator> split(std::int64_t, const Label&) override {
    throw_if_failed();
    return std::make_unique<Alone>(rank_, size_, fake_);
  }

  void fail(const Cause& cause) noexcept override {
    if (failed_) return;
    failed_ = true;
    cause_ = cause;
    if (cause_.rank < 0) cause_.rank = cause_.reporter = rank_;
  }

  Buffer allocate(std::int64_t bytes, Sharing) override { return private_buffer(bytes); }

 protected:
  Work begin_call(const Call& call) override {
    throw_if_failed();
    check_call(call, size_, fake_);
    if (call.input.data != nullptr && call.output.data != nullptr) move_data(call);
    return {};
  }

 private:
  void throw_if_failed() const {
    if (failed_) throw_cause(cause_);
  }

  void move_data(const Call& call) const {
    auto* out = static_cast<std::byte*>(call.output.data);
    const auto* in = static_cast<const std::byte*>(call.input.data);
    const auto bytes = static_cast<std::size_t>(call.input.bytes());
    switch (call.kind) {
      case Kind::kAllGather:
        for (int r = 0; r < size_; ++r)
          std::memmove(out + bytes * static_cast<std::size_t>(r), in, bytes);
        return;
      case Kind::kReduceScatter:
        return sum_copies(in + call.output.count * rank_ * size_of(call.input.dtype), call);
      case Kind::kAllReduce:
        return sum_copies(in, call);
      case Kind::kBroadcast:
      case Kind::kBarrier:
        return;
    }
  }

  void sum_copies(const std::byte* in, const Call& call) const {
    const std::vector<const void*> sources(static_cast<std::size_t>(size_), in);
    sum_in_rank_order(sources, call.output.count, call.input.dtype, call.output.data);
  }

  const int rank_;
  const int size_;
  const bool fake_;
  bool failed_ = false;
  Cause cause_;
};

}  // namespace

std::unique_ptr<Communicator> make_self() { return std::make_unique<Alone>(0, 1, false); }

std::unique_ptr<Communicator> make_fake(int rank, int size) {
  check(size >= 1 && rank >= 0 && rank < size, "a rank outside of its world");
  return std::make_unique<Alone>(rank, size, true);
}

}  // namespace plimsoll::comm
