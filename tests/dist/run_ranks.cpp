#include "tests/dist/run_ranks.hpp"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <sstream>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace plimsoll::test {
namespace {

using Clock = std::chrono::steady_clock;

int capture() {
  const int descriptor = memfd_create("captured", MFD_CLOEXEC);
  if (descriptor < 0) throw std::runtime_error("no memory file");
  return descriptor;
}

std::string descriptor_contents(int descriptor) {
  std::string text;
  std::array<char, 4096> part{};
  while (true) {
    const ssize_t n = pread(descriptor, part.data(), part.size(), static_cast<off_t>(text.size()));
    if (n <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
}

// Appending, so that the ranks' writes do not overwrite each other.
void append_to(int descriptor) { fcntl(descriptor, F_SETFL, O_APPEND); }

}  // namespace

Started::Started(std::vector<std::string> command, const std::vector<std::string>& environment)
    : out_(capture()), err_(capture()) {
  append_to(out_);
  append_to(err_);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(out_, STDOUT_FILENO);
    dup2(err_, STDERR_FILENO);
    for (const std::string& setting : environment) {
      const std::size_t equals = setting.find('=');
      setenv(setting.substr(0, equals).c_str(), setting.substr(equals + 1).c_str(), 1);
    }
    execv(words[0], words.data());
    _exit(127);
  }
}

Started::~Started() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(out_);
  close(err_);
}

bool Started::wait_for_lines(const std::string& word, int count) {
  const auto end = Clock::now() + std::chrono::seconds(20);
  while (lines_with(out(), word) < count) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

Outcome Started::finish(std::chrono::seconds deadline) {
  Outcome outcome;
  const auto end = Clock::now() + deadline;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > end) {
      outcome.in_time = false;
      kill(pid_, SIGKILL);
      waitpid(pid_, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  pid_ = -1;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = descriptor_contents(out_);
  outcome.err = descriptor_contents(err_);
  return outcome;
}

std::string Started::out() const { return descriptor_contents(out_); }

std::vector<std::string> ranks_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{PLIMSOLL_COMM_RANKS};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Outcome run_ranks(const std::vector<std::string>& arguments,
                  const std::vector<std::string>& environment, std::chrono::seconds deadline) {
  return Started(ranks_command(arguments), environment).finish(deadline);
}

int lines_with(const std::string& text, const std::string& word) {
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(word) != std::string::npos) ++count;
  }
  return count;
}

}  // namespace plimsoll::test
