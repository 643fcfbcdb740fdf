// Checkpoints of sharded modules across numbers of ranks and stages; the work is in checkpoint_ranks.cpp.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/dist/run_ranks.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll::test {
namespace {

void run(const std::vector<std::string>& words) {
  std::vector<std::string> command = words;
  command.insert(command.begin(), {PLIMSOLL_ENGINE_RANKS, "checkpoint_ranks"});
  const Outcome outcome = Started(command, {}).finish(std::chrono::seconds(120));
  INFO(words[0], " ranks, stage ", words[2], ", ", words[3], ": ", outcome.err);
  CHECK(outcome.in_time);
  CHECK(outcome.code == 0);
}

// From 4 ranks to others at other stages, and back.
void there_and_back(const std::string& kind, int stage) {
  const TemporaryFolder folder;
  const std::string saved = folder.path() + "/4";
  run({"4", "save", std::to_string(stage), kind, saved});
  int next = stage;
  for (const std::string ranks : {"1", "2", "3", "5", "8"}) {
    next = (next + 1) % 4;
    const std::string back = folder.path() + "/" + ranks;
    run({ranks, "load", std::to_string(next), kind, saved, back});
    if (ranks == "2" || ranks == "5") {
      run({"4", "load", std::to_string((next + 2) % 4), kind, back, back + "_4"});
    }
  }
}

}  // namespace

TEST_CASE("troubles 33, 34, 55: saved at 4 ranks, loaded at 1, 2, 3, 5, 8 and back, other stages") {
  there_and_back("fp32", 3);
}

TEST_CASE("troubles 6, 51: the same with masters and moments, from stage 1") {
  there_and_back("mixed", 1);
}

}  // namespace plimsoll::test
