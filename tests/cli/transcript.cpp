#include "tests/cli/transcript.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "tests/cli/call.hpp"

namespace plimsoll::test {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// "Peak: ..." is any line that begins with "Peak: ".
bool line_matches(const std::string& wanted, const std::string& seen) {
  constexpr std::string_view kDots = "...";
  if (wanted == seen) return true;
  return wanted.ends_with(kDots) &&
         seen.starts_with(wanted.substr(0, wanted.size() - kDots.size()));
}

bool matches(const Lines& wanted, std::size_t i, const Lines& seen, std::size_t j) {
  if (i == wanted.size()) return j == seen.size();
  if (wanted[i] != "...") {
    return j < seen.size() && line_matches(wanted[i], seen[j]) &&
           matches(wanted, i + 1, seen, j + 1);
  }
  for (std::size_t skip = j; skip <= seen.size(); ++skip) {
    if (matches(wanted, i + 1, seen, skip)) return true;
  }
  return false;
}

std::string program_command(std::string command) {
  constexpr std::string_view kRun = "./run ";
  return command.starts_with(kRun) ? command.substr(kRun.size()) : command;
}

bool is_checked(const std::string& command) {
  if (!command.starts_with("plimsoll ") && command != "plimsoll") return false;
  // The last is the folder that a documented training run leaves to the commands behind it.
  const char* const of_engine[] = {" measure ", " train ", "build/train-example"};
  const bool engine =
      std::any_of(std::begin(of_engine), std::end(of_engine),
                  [&](const char* part) { return command.find(part) != std::string::npos; });
  return PLIMSOLL_HAS_ENGINE || !engine;
}

// What one command is now: the wanted lines while they match, else the seen ones.
Lines refreshed_output(const std::string& line, const Lines& wanted, int& commands) {
  const std::string command = program_command(line.substr(2));
  if (!is_checked(command)) return wanted;
  ++commands;
  const Lines seen = lines_of(call_shell(command).out);
  return matches(wanted, 0, seen, 0) ? wanted : seen;
}

class Refresher {
 public:
  Refresher(bool markdown, int& commands)
      : markdown_(markdown), inside_(!markdown), commands_(commands) {}

  Lines refresh(const Lines& lines) {
    for (const std::string& line : lines) take(line);
    finish_command();
    return std::move(result_);
  }

 private:
  void take(const std::string& line) {
    if (markdown_ && line.starts_with("```")) {
      finish_command();
      inside_ = !inside_ && line == "```console";
      result_.push_back(line);
    } else if (inside_ && line.starts_with("$ ")) {
      finish_command();
      command_ = line;
      result_.push_back(line);
    } else if (command_.empty()) {
      result_.push_back(line);
    } else {
      wanted_.push_back(line);
    }
  }

  void finish_command() {
    if (command_.empty()) return;
    for (std::string& line : refreshed_output(command_, wanted_, commands_)) {
      result_.push_back(std::move(line));
    }
    command_.clear();
    wanted_.clear();
  }

  const bool markdown_;
  bool inside_;
  int& commands_;
  std::string command_;
  Lines wanted_;
  Lines result_;
};

}  // namespace

std::string refreshed(const std::string& path, const std::string& text, int& commands) {
  return joined(Refresher(path.ends_with(".md"), commands).refresh(lines_of(text)));
}

void check_transcript(const std::string& path, int least) {
  CAPTURE(path);
  std::ifstream stream(path);
  REQUIRE(stream.good());
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  int commands = 0;
  const std::string now = refreshed(path, text, commands);
  CHECK(commands >= least);
  if (now == text) return;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << now;
    return;
  }
  const Lines wanted = lines_of(text);
  const Lines seen = lines_of(now);
  std::size_t i = 0;
  while (i < wanted.size() && i < seen.size() && wanted[i] == seen[i]) ++i;
  FAIL_CHECK(path, ":", i + 1, ": differs, UPDATE_GOLDEN=1 rewrites the file\n  written: ",
             i < wanted.size() ? wanted[i] : "(end)",
             "\n  now:     ", i < seen.size() ? seen[i] : "(end)");
}

}  // namespace plimsoll::test
