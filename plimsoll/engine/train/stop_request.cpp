#include "plimsoll/engine/train/stop_request.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace plimsoll::engine {
namespace {

constexpr std::int64_t kSameSignal = 300'000'000;  // ns

// When the first signal came, ns of the monotonic clock; 0: none.
std::atomic<std::int64_t> first_signal{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

// Only calls that are safe in a handler.
void note(int signal) {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = time.tv_sec * 1'000'000'000 + time.tv_nsec;
  std::int64_t before = 0;
  if (first_signal.compare_exchange_strong(before, now) || now - before < kSameSignal) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
}

}  // namespace

StopRequest::StopRequest() {
  first_signal.store(0);
  handle(note);
}

StopRequest::~StopRequest() { handle(SIG_DFL); }

bool StopRequest::made() const { return first_signal.load() != 0; }

}  // namespace plimsoll::engine
