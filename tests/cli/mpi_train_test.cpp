// plimsoll train as ranks of mpirun: the same run as with --ranks, and what it refuses.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/dist/run_ranks.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

constexpr const char* kModel = "minigpt:d=32,L=2,V=256,s=16,heads=2";
const bool kNoMpi = std::string(PLIMSOLL_MPIEXEC).empty();

// plimsoll train in a folder, behind the words of a launcher.
test::Outcome train(const Words& launcher, const test::TemporaryFolder& folder,
                    const std::string& out, const Words& more, const Words& environment = {}) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "the quick brown fox jumps over the lazy dog. ";
  Words words = launcher;
  words.insert(words.end(),
               {PLIMSOLL_PROGRAM, "train", kModel, "--data", folder.write("text", text)});
  for (const Words& standard : {Words{"--out", folder.path() + "/" + out}, Words{"--steps", "4"},
                                Words{"--lr", "1e-3"}, Words{"--zero", "3"}}) {
    if (std::find(more.begin(), more.end(), standard[0]) != more.end()) continue;
    words.insert(words.end(), standard.begin(), standard.end());
  }
  words.insert(words.end(), more.begin(), more.end());
  return test::Started(words, environment).finish(std::chrono::seconds(90));
}

// Of every step the loss and the norm, which no backend may change.
std::vector<std::string> numbers(const test::TemporaryFolder& folder, const std::string& out) {
  std::vector<std::string> result;
  std::ifstream file(folder.path() + "/" + out + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const json step = json::parse(line);
    result.push_back(step["loss"].dump() + " " + step["grad_norm"].dump());
  }
  return result;
}

Words mpirun(const char* ranks) { return {PLIMSOLL_MPIEXEC, "-n", ranks}; }

}  // namespace

TEST_CASE("mpirun: the same bits as ranks of shared memory, resumed at another number" *
          doctest::skip(kNoMpi)) {
  const test::TemporaryFolder folder;
  const auto shm = train({}, folder, "shm", {"--ranks", "2"});
  const auto mpi = train(mpirun("2"), folder, "mpi", {});
  CAPTURE(mpi.err);
  REQUIRE(shm.code == 0);
  REQUIRE(mpi.code == 0);
  CHECK(numbers(folder, "mpi").size() == 4);
  CHECK(numbers(folder, "mpi") == numbers(folder, "shm"));
  CHECK(test::lines_with(mpi.err, "checkpoint of step 4 written") == 1);
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/mpi/last-words"));

  const auto further = train(mpirun("3"), folder, "mpi", {"--resume", "--steps", "6"});
  CAPTURE(further.err);
  CHECK(further.code == 0);
  CHECK(test::lines_with(further.err, "resumed after step 4, changed: ranks 2 -> 3") == 1);
  CHECK(numbers(folder, "mpi").size() == 6);
}

TEST_CASE("mpirun: what is refused is told once, and the job ends with its code" *
          doctest::skip(kNoMpi)) {
  struct Refused {
    Words more;
    const char* text;
  };
  for (const Refused& one :
       {Refused{{"--ranks", "3"}, "[--ranks] ranks=3, expected 2 as started by mpirun"},
        {{"--restart", "1"}, "[--restart] mpirun ends with its ranks"},
        {{"--out", "/dev/null/run"}, "/dev/null/run"}}) {
    const test::TemporaryFolder folder;
    const auto refused = train(mpirun("2"), folder, "run", one.more);
    CAPTURE(refused.err);
    CHECK(refused.in_time);
    CHECK(refused.code >= 2);
    CHECK(refused.code <= 3);
    CHECK(test::lines_with(refused.err, one.text) == 1);
    CHECK(refused.out.empty());
  }
}

TEST_CASE("torchrun's ranks are refused before anything is done, with a hint") {
  const test::TemporaryFolder folder;
  for (const Words& more : {Words{}, Words{"--ranks", "2"}}) {
    const auto refused = train({}, folder, "run", more, {"RANK=0", "WORLD_SIZE=2"});
    CHECK(refused.code == 2);
    CHECK(refused.out.empty());
    CHECK(test::lines_with(refused.err, "this process is a rank of torchrun") == 1);
    CHECK(refused.err.find("Hint: run plimsoll itself with --ranks R, or with mpirun -n R") !=
          std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder.path() + "/run"));
  }
}

TEST_CASE("a launcher's environment in a build without MPI says what is missing" *
          doctest::skip(!kNoMpi)) {
  const test::TemporaryFolder folder;
  const auto refused = train({}, folder, "run", {}, {"PMI_RANK=0", "PMI_SIZE=2"});
  CHECK(refused.code == 3);
  CHECK(refused.err.find("[mpi] this build has no MPI") != std::string::npos);
}

TEST_CASE("a batch script of Slurm, a shell in a step and mpirun -n 1 are plain starts") {
  const test::TemporaryFolder folder;
  for (const Words& environment :
       {Words{"SLURM_PROCID=0"}, Words{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1"},
        Words{"PMI_RANK=0", "PMI_SIZE=1"}}) {
    const auto run = train({}, folder, "run", {"--steps", "1", "--force"}, environment);
    CAPTURE(run.err);
    CHECK(run.code == 0);
  }
}

TEST_CASE("last words of ranks that were killed are listed, told on resume, and gone after it") {
  namespace fs = std::filesystem;
  const test::TemporaryFolder folder;
  REQUIRE(train({}, folder, "run", {"--zero", "0"}).code == 0);
  const std::string run = folder.path() + "/run";
  fs::remove(run + "/ENDED");
  fs::create_directories(run + "/last-words");
  folder.write("run/last-words/rank-0000",
               "calls=9 step=5 operation=all_reduce unit=gradient norm\n");
  folder.write("run/last-words/rank-0001", "calls=8 step=5 operation=all_gather unit=blocks.1\n");
  const std::string words =
      "[comm] rank 1: was behind the others when all ended without a word; operation=all_gather, "
      "unit=blocks.1, step=5";

  const auto list = [&](const Words& more) {
    Words command = {PLIMSOLL_PROGRAM, "checkpoint", "list", run};
    command.insert(command.end(), more.begin(), more.end());
    return test::Started(command, {}).finish(std::chrono::seconds(30));
  };
  CHECK(list({}).out.find("Last words: " + words) != std::string::npos);
  CHECK(json::parse(list({"--json"}).out)["last_words"] == words);

  const auto resumed = train({}, folder, "run", {"--zero", "0", "--resume", "--steps", "6"});
  CHECK(resumed.code == 0);
  CHECK(test::lines_with(resumed.err, "before: " + words) == 1);
  CHECK(test::lines_with(resumed.err, "the run before did not come to its end") == 1);
  CHECK_FALSE(fs::exists(run + "/last-words"));
  CHECK(list({}).out.find("Last words") == std::string::npos);
}

}  // namespace plimsoll
