#include "tests/cli/call.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <pty.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace plimsoll::test {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

File temporary_file() {
  File file(std::tmpfile());
  if (!file) throw std::runtime_error("no temporary file");
  return file;
}

std::string contents(std::FILE* file) {
  std::string text;
  std::array<char, 4096> part{};
  std::rewind(file);
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), file)) {
    text.append(part.data(), n);
  }
  return text;
}

int exit_code(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The descriptor that becomes the child's stdout, and the end from which a terminal is read.
struct Target {
  int child = -1;
  int parent = -1;
};

Target open_terminal(int columns) {
  ::winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = 50;
  Target target;
  if (::openpty(&target.parent, &target.child, nullptr, nullptr, &size) != 0) {
    throw std::runtime_error("no pseudo-terminal");
  }
  return target;
}

Target open_target(const CallOptions& options, std::FILE* file) {
  switch (options.stdout_is) {
    case Stdout::kFile:
      return {::dup(::fileno(file)), -1};
    case Stdout::kTerminal:
      return open_terminal(options.columns);
    case Stdout::kClosedPipe: {
      std::array<int, 2> ends{};
      if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
      ::close(ends[0]);
      return {ends[1], -1};
    }
    case Stdout::kClosed:
      return {};
    case Stdout::kFull:
      return {::open("/dev/full", O_WRONLY), -1};
  }
  return {};
}

[[noreturn]] void run_child(std::vector<std::string> arguments, const CallOptions& options, int out,
                            int err) {
  ::close(STDOUT_FILENO);
  if (out >= 0) ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  for (const std::string& setting : options.environment) {
    ::setenv(setting.substr(0, setting.find('=')).c_str(),
             setting.substr(setting.find('=') + 1).c_str(), 1);
  }
  std::vector<char*> words;
  arguments.insert(arguments.begin(), PLIMSOLL_PROGRAM);
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  ::execv(words[0], words.data());
  std::_Exit(127);
}

// A terminal's text, with its line ends as files have them. Ends when the child has closed it.
std::string read_terminal(int descriptor) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t n = ::read(descriptor, part.data(), part.size());
    if (n <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  std::erase(text, '\r');
  return text;
}

}  // namespace

Call call(const std::vector<std::string>& arguments, const CallOptions& options) {
  const File out = temporary_file();
  const File err = temporary_file();
  const Target target = open_target(options, out.get());
  const pid_t child = ::fork();
  if (child == 0) run_child(arguments, options, target.child, ::fileno(err.get()));
  if (target.child >= 0) ::close(target.child);
  Call result;
  if (target.parent >= 0) result.out = read_terminal(target.parent);
  result.code = exit_code(child);
  if (target.parent >= 0) ::close(target.parent);
  if (options.stdout_is == Stdout::kFile) result.out = contents(out.get());
  result.err = contents(err.get());
  return result;
}

Call call_shell(const std::string& line) {
  const std::string program = PLIMSOLL_PROGRAM;
  const std::string folder = program.substr(0, program.rfind('/'));
  const std::string command = "PATH='" + folder + "':\"$PATH\"; { " + line + "; } 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("no shell");
  Call result;
  std::array<char, 4096> part{};
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe)) {
    result.out.append(part.data(), n);
  }
  const int status = ::pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return result;
}

int line_count(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace plimsoll::test
