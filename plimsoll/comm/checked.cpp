#include "plimsoll/comm/checked.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace plimsoll::comm {
namespace {

// Memory of the gathered signatures, and both works; the comparison is finished first.
class CheckedWork final : public PendingWork {
 public:
  CheckedWork(Communicator& group, const Call& call, std::uint64_t sequence)
      : group_(group),
        step_(call.label.step),
        own_(signature_of(call, sequence)),
        all_(static_cast<std::size_t>(group.size())) {
    compare_ = group.all_gather({&own_, kBytes, DType::kUInt8},
                                {all_.data(), kBytes * group.size(), DType::kUInt8},
                                {"order check", step_});
    work_ = begin(group, call);
  }

  void finish(Clock::time_point deadline) override {
    compare_.finish(deadline);
    if (const std::optional<Odd> odd = odd_one(all_)) {
      const Cause cause = mismatch(odd->reference, all_[static_cast<std::size_t>(odd->reference)],
                                   odd->rank, all_[static_cast<std::size_t>(odd->rank)], step_);
      group_.fail(cause);
      throw Mismatch(cause);
    }
    work_.finish(deadline);
  }

  Milliseconds timeout() const { return compare_.timeout(); }

 private:
  static constexpr std::int64_t kBytes = sizeof(Signature);

  Communicator& group_;
  const std::int64_t step_;
  const Signature own_;
  std::vector<Signature> all_;
  Work compare_;
  Work work_;
};

}  // namespace

Work Checked::begin_call(const Call& call) {
  auto work = std::make_unique<CheckedWork>(inner(), call, sequence_++);
  const Milliseconds timeout = work->timeout();
  return {std::move(work), timeout};
}

std::unique_ptr<Decorator> Checked::around(Communicator& inner) {
  return std::make_unique<Checked>(inner);
}

}  // namespace plimsoll::comm
