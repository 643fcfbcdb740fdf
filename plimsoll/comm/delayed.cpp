#include "plimsoll/comm/delayed.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace plimsoll::comm {

class DelayedWork final : public PendingWork {
 public:
  DelayedWork(Work work, Clock::time_point ready, std::shared_ptr<Delayed::State> state)
      : work_(std::move(work)), ready_(ready), state_(std::move(state)) {}

  void finish(Clock::time_point deadline) override {
    const Clock::time_point begin = Clock::now();
    if (ready_ > begin) {
      std::this_thread::sleep_until(std::min(ready_, deadline));
      state_->slept += Clock::now() - begin;
    }
    work_.finish(deadline);
  }

 private:
  Work work_;
  const Clock::time_point ready_;
  const std::shared_ptr<Delayed::State> state_;
};

Work Delayed::begin_call(const Call& call) {
  Work work = Decorator::begin_call(call);
  const Milliseconds timeout = work.timeout() + delay_;
  state_->free_at = std::max(state_->free_at, Clock::now()) + delay_;
  return {std::make_unique<DelayedWork>(std::move(work), state_->free_at, state_), timeout};
}

std::unique_ptr<Decorator> Delayed::around(Communicator& inner) {
  return std::unique_ptr<Decorator>(new Delayed(inner, delay_, state_));
}

}  // namespace plimsoll::comm
