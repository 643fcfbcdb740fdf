// Runs the built program as a user would and keeps what it wrote.
#pragma once

#include <string>
#include <vector>

namespace plimsoll::test {

struct Call {
  int code = -1;  // exit code; 128 + signal when it was killed
  std::string out;
  std::string err;
};

enum class Stdout { kFile, kTerminal, kClosedPipe, kClosed, kFull };

struct CallOptions {
  Stdout stdout_is = Stdout::kFile;
  std::vector<std::string> environment;  // "NO_COLOR=1"
  int columns = 100;                     // of the terminal
};

// `plimsoll ARGUMENTS...` in the repository root.
Call call(const std::vector<std::string>& arguments, const CallOptions& options = {});

// A line for sh, with plimsoll found first on PATH; stdout and stderr together.
Call call_shell(const std::string& line);

// How many lines a text has; the last one must end.
int line_count(const std::string& text);

}  // namespace plimsoll::test
