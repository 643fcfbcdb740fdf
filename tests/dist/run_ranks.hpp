// Runs a program with a hard deadline and keeps what it wrote.
#pragma once

#include <chrono>
#include <string>
#include <sys/types.h>
#include <vector>

namespace plimsoll::test {

struct Outcome {
  int code = -1;  // 128 + signal when it was killed
  bool in_time = true;
  std::string out;
  std::string err;
};

// A program that is running; destroyed, it is killed.
class Started {
 public:
  Started(std::vector<std::string> command, const std::vector<std::string>& environment);
  ~Started();
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  pid_t pid() const { return pid_; }
  // Until stdout holds `count` lines with `word`, at most 20 s.
  bool wait_for_lines(const std::string& word, int count);
  Outcome finish(std::chrono::seconds deadline);
  std::string out() const;

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
};

// comm_ranks ARGUMENTS...
Outcome run_ranks(const std::vector<std::string>& arguments,
                  const std::vector<std::string>& environment = {},
                  std::chrono::seconds deadline = std::chrono::seconds(90));
std::vector<std::string> ranks_command(const std::vector<std::string>& arguments);

// How many lines of `text` contain `word`.
int lines_with(const std::string& text, const std::string& word);

}  // namespace plimsoll::test
