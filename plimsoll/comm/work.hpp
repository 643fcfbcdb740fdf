// A collective that has begun.
#pragma once

#include <chrono>
#include <memory>

namespace plimsoll::comm {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// What a backend or decorator knows about a collective in flight. Destroyed before finish() has
// returned, it gives the group up: nobody would ever answer its peers.
class PendingWork {
 public:
  virtual ~PendingWork() = default;
  // Returns when the output is complete and the input may be changed; throws a CommError.
  virtual void finish(Clock::time_point deadline) = 0;
};

// Handle of one collective. Its views have to stay valid, inputs unchanged and outputs untouched,
// until wait() returns. Moved, never copied.
class [[nodiscard]] Work {
 public:
  Work() = default;  // complete
  Work(std::unique_ptr<PendingWork> pending, Milliseconds timeout)
      : pending_(std::move(pending)), timeout_(timeout) {}

  // Until the collective is complete, at most the communicator's timeout or `timeout` from now.
  // A second call returns at once.
  void wait() { wait(timeout_); }
  void wait(Milliseconds timeout) { finish(Clock::now() + timeout); }

  // For decorators, which share one deadline among several works.
  void finish(Clock::time_point deadline) {
    if (!pending_) return;
    pending_->finish(deadline);
    pending_.reset();
  }
  Milliseconds timeout() const { return timeout_; }

 private:
  std::unique_ptr<PendingWork> pending_;
  Milliseconds timeout_{0};
};

}  // namespace plimsoll::comm
