#include "plimsoll/comm/shared/watch.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <utility>

#include "plimsoll/comm/shared/spawn.hpp"

namespace plimsoll::comm {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

class Watch {
 public:
  Watch(const Segment& segment, std::vector<pid_t> children, Milliseconds grace)
      : segment_(segment), children_(std::move(children)), grace_(grace) {}

  int run() {
    const sigset_t signals = launcher_signals();
    while (running() > 0) {
      // Bounded, so that a lost SIGCHLD or the end of `grace` is noticed.
      const timespec slice{0, 100'000'000};
      const int signal = sigtimedwait(&signals, nullptr, &slice);
      if (signal > 0 && signal != SIGCHLD) send_all(signal);
      reap();
      if (kill_at_ && Clock::now() >= *kill_at_) send_all(SIGKILL);
    }
    return code_;
  }

 private:
  std::ptrdiff_t running() const {
    return std::count_if(children_.begin(), children_.end(), [](pid_t pid) { return pid > 0; });
  }

  void send_all(int signal) const {
    for (const pid_t pid : children_) {
      if (pid > 0) kill(pid, signal);
    }
  }

  void reap() {
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      int status = 0;
      if (children_[rank] <= 0 || waitpid(children_[rank], &status, WNOHANG) != children_[rank]) {
        continue;
      }
      children_[rank] = 0;
      note_end(static_cast<int>(rank), status);
    }
  }

  // The cause before the mark: whoever sees a peer's end then finds the reason, too.
  void note_end(int rank, int status) {
    const bool killed = WIFSIGNALED(status);
    const int value = killed ? WTERMSIG(status) : WEXITSTATUS(status);
    const std::uint32_t end =
        (killed ? End::kSignalled : End::kExited) | static_cast<std::uint32_t>(value);
    RankWord& word = segment_.header().rank[rank];
    const bool returned = word.returned.load() != 0;
    if (killed || value != 0 || !returned) {
      fail(rank, word, end, returned);
      const int code = killed ? 128 + value : value;
      if (code_ == 0) code_ = code != 0 ? code : 1;
    }
    word.end.store(end, std::memory_order_release);
    segment_.ring_all();
  }

  void fail(int rank, const RankWord& word, std::uint32_t end, bool returned) {
    Cause cause;
    cause.rank = rank;
    cause.step = word.step;
    cause.operation = word.operation;
    cause.unit = word.unit;
    cause.text = describe_end(end);
    if (end == (End::kExited | kNotStarted) && !returned && word.operation[0] == 0) {
      cause.text += ", probably never started";
    } else if (end == End::kExited) {
      cause.text += " in the middle of its work";
    }
    segment_.fail(cause);
    if (!kill_at_) kill_at_ = Clock::now() + grace_;
  }

  const Segment& segment_;
  std::vector<pid_t> children_;  // 0: has ended
  const Milliseconds grace_;
  std::optional<Clock::time_point> kill_at_;
  int code_ = 0;
};

}  // namespace

sigset_t launcher_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (const int signal : kForwarded) sigaddset(&signals, signal);
  return signals;
}

int watch_ranks(const Segment& segment, std::vector<pid_t> children, Milliseconds grace) {
  return Watch(segment, std::move(children), grace).run();
}

}  // namespace plimsoll::comm
