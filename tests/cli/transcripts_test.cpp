// Golden outputs, and the commands that documents show.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/cli/transcript.hpp"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("golden outputs") {
  const std::vector<std::string> files = files_in("tests/cli/golden");
  CHECK(files.size() >= 10);
  for (const std::string& file : files) test::check_transcript(file, 1);
}

TEST_CASE("golden outputs that depend on the engine being there") {
  const std::string folder = PLIMSOLL_HAS_ENGINE ? "engine" : "no_engine";
  if (!fs::exists("tests/cli/golden/" + folder)) return;
  for (const std::string& file : files_in("tests/cli/golden/" + folder)) {
    test::check_transcript(file, 0);
  }
}

TEST_CASE("documents show what the program prints") {
  std::istringstream list(PLIMSOLL_DOCUMENTS);
  int documents = 0;
  for (std::string file; std::getline(list, file, ':'); ++documents) {
    test::check_transcript(file, 0);
  }
  CHECK(documents > 0);
}

TEST_CASE("a transcript that is wrong is noticed, and dots stand for any lines") {
  int commands = 0;
  const auto refresh = [&](const std::string& text) {
    return test::refreshed("x.txt", text, commands);
  };
  CHECK(refresh("$ plimsoll --version\nplimsoll 9.9.9\n") ==
        "$ plimsoll --version\nplimsoll 0.1.0\n");
  const std::string dotted =
      "$ plimsoll params gpt2\ngpt2: 124,439,808 parameters (124.44 M) in "
      "148 tensors\n...\n";
  CHECK(refresh(dotted) == dotted);
  const std::string line_end = "$ plimsoll --version\nplimsoll ...\n";
  CHECK(refresh(line_end) == line_end);
  const std::string other = "$ cmake --preset core\nanything\n";
  CHECK(refresh(other) == other);
  CHECK(commands == 3);
  const std::string outside = "```\n$ plimsoll --version\nwrong\n```\n";
  CHECK(test::refreshed("x.md", outside, commands) == outside);
  CHECK(test::refreshed("x.md", "```console\n$ ./run plimsoll --version\n```\n", commands) ==
        "```console\n$ ./run plimsoll --version\nplimsoll 0.1.0\n```\n");
}

}  // namespace
}  // namespace plimsoll
