#include "plimsoll/comm/shared/spawn.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

namespace plimsoll::comm {
namespace {

// This process's environment with the variable of `rank`.
std::vector<std::string> environment_of(int rank, int descriptor) {
  std::vector<std::string> result;
  const std::string prefix = fmt::format("{}=", kRankVariable);
  for (char** one = environ; *one != nullptr; ++one) {
    if (!std::string_view(*one).starts_with(prefix)) result.emplace_back(*one);
  }
  result.push_back(fmt::format("{}{},{},{}", prefix, rank, descriptor, getpid()));
  return result;
}

// Between fork and exec only calls that are safe after a signal: other threads may have held locks.
[[noreturn]] void become_rank(int rank, const Segment& segment, char** argv, char** environment,
                              const sigset_t& mask, pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(kNotStarted);  // died before the line above
  setpgid(0, 0);
  if (rank > 0 || isatty(STDIN_FILENO) == 1) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  }
  fcntl(segment.descriptor(), F_SETFD, 0);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execve("/proc/self/exe", argv, environment);
  _exit(kNotStarted);
}

}  // namespace

std::vector<pid_t> spawn_ranks(const Segment& segment, char** argv, const sigset_t& mask) {
  const pid_t launcher = getpid();
  std::vector<pid_t> children;
  for (int rank = 0; rank < segment.ranks(); ++rank) {
    std::vector<std::string> variables = environment_of(rank, segment.descriptor());
    std::vector<char*> environment;
    for (std::string& one : variables) environment.push_back(one.data());
    environment.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) become_rank(rank, segment, argv, environment.data(), mask, launcher);
    if (child < 0) {
      const int error = errno;
      for (const pid_t one : children) {
        kill(one, SIGKILL);
        waitpid(one, nullptr, 0);
      }
      throw std::system_error(error, std::generic_category(), "fork of a rank");
    }
    children.push_back(child);
  }
  return children;
}

}  // namespace plimsoll::comm
