#include "plimsoll/comm/launch.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <optional>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "plimsoll/base/error.hpp"
#include "plimsoll/comm/self.hpp"
#include "plimsoll/comm/shared/group.hpp"
#include "plimsoll/comm/shared/spawn.hpp"
#include "plimsoll/comm/shared/watch.hpp"
#include "plimsoll/comm/torchrun.hpp"

namespace plimsoll::comm {
namespace {

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stderr);
  std::fflush(stderr);
}

int code(ExitCode exit_code) { return static_cast<int>(exit_code); }

// What `body` returns; its exceptions end the world and become an exit code.
int run_body(Communicator& world, const std::function<int(Communicator&)>& body,
             std::string* thrown) {
  try {
    return body(world);
  } catch (const InternalError& error) {
    world.abort(error.what());
    *thrown = error.what();
    return code(ExitCode::kInternal);
  } catch (const std::exception& error) {
    world.abort(error.what());
    *thrown = error.what();
    return code(ExitCode::kEnvironment);
  }
}

int run_alone(const std::function<int(Communicator&)>& body) {
  const auto world = make_self();
  std::string thrown;
  const int result = run_body(*world, body, &thrown);
  if (!thrown.empty()) say(thrown.starts_with('[') ? thrown : "[comm] rank 0: " + thrown);
  return result;
}

struct Inherited {
  int rank = -1;
  int descriptor = -1;
  int launcher = 0;
};

// What the variable says, unless it was meant for another process: a rank's own children inherit it.
std::optional<Inherited> inherited() {
  const char* text = std::getenv(kRankVariable);
  Inherited own;
  if (text == nullptr ||
      std::sscanf(text, "%d,%d,%d", &own.rank, &own.descriptor, &own.launcher) != 3) {
    return std::nullopt;
  }
  if (own.launcher != getppid()) return std::nullopt;
  return own;
}

// The segment that this process was started for, or null.
std::shared_ptr<Segment> attached(const Inherited& own) {
  auto segment = Segment::attach(own.descriptor);
  if (!segment || segment->header().launcher != own.launcher) return nullptr;
  if (own.rank < 0 || own.rank >= segment->ranks()) return nullptr;
  fcntl(own.descriptor, F_SETFD, FD_CLOEXEC);
  return segment;
}

int run_rank(const std::shared_ptr<Segment>& segment, int rank,
             const std::function<int(Communicator&)>& body, const LaunchOptions& options) {
  const auto world = make_world(segment, rank, options.timeout);
  std::string thrown;  // told by the launcher, once for the world
  const int result = run_body(*world, body, &thrown);
  segment->header().rank[rank].returned.store(1);
  return result;
}

int run_launcher(char** argv, int ranks, const LaunchOptions& options) {
  const auto segment = Segment::in_memfd(ranks, options.arena_bytes);
  const sigset_t signals = launcher_signals();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  int result = 0;
  try {
    result = watch_ranks(*segment, spawn_ranks(*segment, argv, before), options.grace);
  } catch (const std::exception&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (segment->failed()) {
    say(format_cause(segment->cause()));
    if (result == 0) result = code(ExitCode::kEnvironment);
  }
  return result;
}

}  // namespace

bool is_launched_rank() { return inherited().has_value(); }

int launch(int, char** argv, int ranks, const std::function<int(Communicator&)>& body,
           const LaunchOptions& options) {
  if (const auto own = inherited()) {
    if (const auto segment = attached(*own)) {
      if (segment->ranks() == ranks) return run_rank(segment, own->rank, body, options);
      say(
          fmt::format("[launch] ranks={} in rank {}, expected {} as in the launcher. Hint: the "
                      "number must depend on the arguments alone",
                      ranks, own->rank, segment->ranks()));
      return code(ExitCode::kBadInput);
    }
  }
  if (ranks < 1 || ranks > kMaxRanks) {
    say(fmt::format("[--ranks] ranks={}, expected 1 .. {}", ranks, kMaxRanks));
    return code(ExitCode::kBadInput);
  }
  if (started_by_torchrun()) return refuse_torchrun("run plimsoll itself with --ranks R");
  if (ranks == 1) return run_alone(body);
  try {
    return run_launcher(argv, ranks, options);
  } catch (const std::exception& error) {
    say(fmt::format("[launch] {}", error.what()));
    return code(ExitCode::kEnvironment);
  }
}

}  // namespace plimsoll::comm
