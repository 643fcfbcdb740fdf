#include "plimsoll/comm/shared/channel.hpp"

#include <algorithm>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll::comm {
namespace {

constexpr std::chrono::milliseconds kLook{50};  // [Note: Waiting]

int usable_cores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

// Looks at the counter before sleeping: some 20 us when everybody has a core; a rank that spins on
// the core that its peer needs only delays it.
int spins_for(int ranks) { return ranks <= usable_cores() ? 500 : 20; }

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Clock::duration at_most) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(at_most).count();
  timespec time{};
  time.tv_sec = nanoseconds / 1'000'000'000;
  time.tv_nsec = nanoseconds % 1'000'000'000;
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

// Counts a thread as asleep while it lives.
class Asleep {
 public:
  explicit Asleep(std::atomic<std::uint32_t>& count) : count_(count) { count_.fetch_add(1); }
  ~Asleep() { count_.fetch_sub(1); }
  Asleep(const Asleep&) = delete;
  Asleep& operator=(const Asleep&) = delete;

 private:
  std::atomic<std::uint32_t>& count_;
};

}  // namespace

Channel::Channel(std::shared_ptr<Arena> arena, std::int64_t block, std::vector<int> members, int me)
    : arena_(std::move(arena)),
      block_(block),
      members_(std::move(members)),
      me_(me),
      spins_(spins_for(segment().ranks())) {}

MemberControl& Channel::control(int member) const {
  return *reinterpret_cast<MemberControl*>(segment().at(block_ + control_offset(member)));
}

std::byte* Channel::slot(int member, std::uint64_t index) const {
  return segment().at(block_ + slot_offset(size(), member, static_cast<std::int64_t>(index)));
}

// The store and the look at `asleep` in ring() are sequentially consistent, as are the waiter's
// count and its look at the counter: one of the two sees the other.
void Channel::publish(Counter counter, std::uint64_t value) const {
  (control(me_).*counter).store(value);
  for (int member = 0; member < size(); ++member) {
    if (member != me_) segment().ring(world_rank(member));
  }
}

void Channel::await(int member, Counter counter, std::uint64_t value, const Wait& wait) const {
  const std::atomic<std::uint64_t>& word = control(member).*counter;
  for (int i = 0; i < spins_; ++i) {
    if (word.load(std::memory_order_acquire) >= value) return;
    pause();
  }
  sleep(member, counter, value, wait);
}

void Channel::await_all(Counter counter, std::uint64_t value, const Wait& wait) const {
  for (int member = 0; member < size(); ++member) {
    if (member != me_) await(member, counter, value, wait);
  }
}

void Channel::sleep(int member, Counter counter, std::uint64_t value, const Wait& wait) const {
  const std::atomic<std::uint64_t>& word = control(member).*counter;
  RankWord& own = segment().header().rank[world_rank(me_)];
  const RankWord& peer = segment().header().rank[world_rank(member)];
  const Asleep asleep(own.asleep);
  while (true) {
    const std::uint32_t seen = own.doorbell.load();
    // Read before the counter: what the peer did before its end still counts.
    const std::uint32_t end = peer.end.load(std::memory_order_acquire);
    if (word.load() >= value) return;
    throw_if_failed();
    if (end != 0) {
      fail(cause_in(wait, CauseKind::kPeerLost, member,
                    describe_end(end) + " without this operation"));
    }
    const auto left = wait.deadline - Clock::now();
    if (left <= Clock::duration::zero()) give_up(member, counter, value, wait);
    futex_wait(own.doorbell, seen, std::min<Clock::duration>(left, kLook));
  }
}

void Channel::give_up(int member, Counter counter, std::uint64_t value, const Wait& wait) const {
  std::vector<int> missing;
  for (int other = 0; other < size(); ++other) {
    if (other != me_ && (control(other).*counter).load() < value) {
      missing.push_back(world_rank(other));
    }
  }
  const double seconds = std::chrono::duration<double>(wait.deadline - wait.begin).count();
  std::string text = fmt::format("did not arrive within {:.3g} s", seconds);
  if (missing.size() > 1) text += fmt::format(" (missing: ranks {})", fmt::join(missing, ", "));
  fail(cause_in(wait, CauseKind::kTimeout, member, std::move(text)));
}

Cause Channel::cause_in(const Wait& wait, CauseKind kind, int member, std::string text) const {
  Cause cause;
  cause.kind = kind;
  cause.rank = world_rank(member);
  cause.reporter = world_rank(me_);
  cause.step = wait.step;
  cause.operation = wait.operation;
  cause.unit = wait.unit;
  cause.text = std::move(text);
  return cause;
}

void Channel::throw_if_failed() const {
  if (segment().failed()) throw_cause(segment().cause());
}

void Channel::fail(const Cause& cause) const {
  segment().fail(cause);
  throw_cause(segment().cause());
}

}  // namespace plimsoll::comm
