// Checkpoints of `plimsoll train` from outside: going on, signals, faults, steps that are not finite.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/call.hpp"
#include "tests/dist/processes.hpp"
#include "tests/dist/run_ranks.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

const std::string kOddModel = "minigpt:d=10,L=2,V=257,s=8,heads=2";

class Runs {
 public:
  Runs() {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "the quick brown fox jumps over the lazy dog. ";
    text_ = folder_.write("text", text);
  }

  std::string out(const std::string& name) const { return folder_.path() + "/" + name; }

  Words words(const std::string& name, const Words& more) const {
    Words words = {"train", kOddModel, "--data", text_, "--lr", "1e-2", "--out", out(name)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  test::Call train(const std::string& name, const Words& more) const {
    return test::call(words(name, more));
  }
  test::Started start(const std::string& name, const Words& more) const {
    Words command = words(name, more);
    command.insert(command.begin(), PLIMSOLL_PROGRAM);
    return {command, {}};
  }

  // A new run folder with the checkpoint of `step` of another one.
  void copy_checkpoint(const std::string& from, const std::string& to, int step) const {
    const std::string name = step_name(step);
    fs::create_directories(out(to));
    fs::copy(out(from) + "/" + name, out(to) + "/" + name, fs::copy_options::recursive);
  }
  static std::string step_name(int step) {
    const std::string digits = std::to_string(step);
    return "step-" + std::string(8 - digits.size(), '0') + digits;
  }

  // Lines of steps by step, without what depends on time or history of the process.
  std::map<int, json> steps(const std::string& name) const {
    std::map<int, json> steps;
    std::ifstream file(out(name) + "/metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      json step = json::parse(line, nullptr, false);
      if (!step.is_object() || step.contains("evaluation")) continue;
      step.erase("tokens_per_second");
      step.erase("peak_bytes");
      steps[step["step"].get<int>()] = step;
    }
    return steps;
  }

  std::map<std::string, std::string> files(const std::string& name, int step) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(out(name) + "/" + step_name(step))) {
      if (entry.path().extension() != ".bin") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
    }
    return files;
  }

  // Until the metrics have a line of `step`.
  bool wait_for_step(const std::string& name, int step) const {
    for (int i = 0; i < 2000; ++i) {
      if (steps(name).contains(step)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

 private:
  test::TemporaryFolder folder_;
  std::string text_;
};

void expect_success(const test::Call& call) {
  CAPTURE(call.err);
  REQUIRE(call.code == 0);
}

bool says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("troubles 38: at the same number of ranks a run goes on bit for bit, dropout included") {
  for (const Words& job : {Words{"--ranks", "2", "--zero", "3"},
                           Words{"--ranks", "3", "--zero", "1", "--precision", "mixed",
                                 "--snapshot", "--accumulate", "2", "--checkpoint", "block"}}) {
    const Runs runs;
    Words words = {"--steps", "26", "--every",   "6", "--keep",  "9", "--dropout",    "0.2",
                   "--clip",  "1",  "--warm-up", "8", "--batch", "2", "--eval-every", "5"};
    words.insert(words.end(), job.begin(), job.end());
    expect_success(runs.train("whole", words));
    runs.copy_checkpoint("whole", "resumed", 6);
    words.emplace_back("--resume");
    const test::Call resumed = runs.train("resumed", words);
    expect_success(resumed);
    says(resumed.err, "resumed after step 6");
    const auto steps = runs.steps("resumed");
    CHECK(steps.size() == 20);
    for (const auto& [step, line] : steps) CHECK(line == runs.steps("whole").at(step));
    CHECK(runs.files("resumed", 26) == runs.files("whole", 26));
  }
}

TEST_CASE("at another number of ranks rows go on where they were") {
  const Runs runs;
  const Words common = {"--steps", "12", "--every", "4", "--keep", "9", "--schedule", "constant"};
  const auto with = [&](Words more) {
    more.insert(more.end(), common.begin(), common.end());
    return more;
  };
  expect_success(runs.train("whole", with({"--ranks", "4", "--zero", "3"})));
  for (const Words& job : {Words{"--ranks", "1", "--accumulate", "4"},
                           Words{"--ranks", "2", "--zero", "2", "--batch", "2"},
                           Words{"--ranks", "4", "--zero", "0"}}) {
    const std::string name = "with " + job[1];
    runs.copy_checkpoint("whole", name, 4);
    Words words = with(job);
    words.emplace_back("--resume");
    const test::Call call = runs.train(name, words);
    expect_success(call);
    for (const auto& [step, line] : runs.steps(name)) {
      const double loss = line["loss"].get<double>();
      // The same rows in the same steps: sums over rows are rounded in another order.
      CHECK(loss ==
            doctest::Approx(runs.steps("whole").at(step)["loss"].get<double>()).epsilon(1e-5));
    }
    if (job[1] != "4") says(call.err, "ranks 4 -> " + job[1]);
  }
}

TEST_CASE("troubles 35: a damaged checkpoint is skipped and named, metrics behind it are dropped") {
  const Runs runs;
  const Words words = {"--steps", "6", "--every", "2", "--keep", "9", "--ranks", "2"};
  expect_success(runs.train("run", words));
  const auto whole = runs.steps("run");
  const auto last = runs.files("run", 6);
  const std::string file = runs.out("run") + "/" + Runs::step_name(6) + "/rank-0001.bin";
  fs::resize_file(file, fs::file_size(file) - 1);
  Words again = words;
  again.emplace_back("--resume");
  const test::Call call = runs.train("run", again);
  expect_success(call);
  says(call.err, "skipped " + runs.out("run") + "/" + Runs::step_name(6));
  says(call.err, "rank-0001.bin");
  says(call.err, "resumed after step 4");
  CHECK(runs.steps("run") == whole);
  CHECK(runs.files("run", 6) == last);
}

TEST_CASE("a signal: one save, and the run goes on from it; a second one ends it at once") {
  const Runs runs;
  const Words endless = {"--steps", "100000", "--ranks", "2", "--zero", "2"};
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string name = "signal" + std::to_string(signal);
    test::Started started = runs.start(name, endless);
    REQUIRE(runs.wait_for_step(name, 3));
    kill(started.pid(), signal);
    const test::Outcome outcome = started.finish(std::chrono::seconds(30));
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    says(outcome.out, "by a signal after step");
    const int made = runs.steps(name).rbegin()->first;
    CHECK(fs::exists(runs.out(name) + "/" + Runs::step_name(made) + "/COMPLETE"));
  }
  test::Started again =
      runs.start("signal15", {"--steps", "100000", "--ranks", "2", "--zero", "2", "--resume"});
  const int before = runs.steps("signal15").rbegin()->first;
  REQUIRE(runs.wait_for_step("signal15", before + 3));
  const std::vector<pid_t> ranks = test::children_of(again.pid());
  // A stopped rank holds the others up, so that no step can end.
  kill(ranks.at(1), SIGSTOP);
  kill(again.pid(), SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  kill(again.pid(), SIGTERM);
  const test::Outcome outcome = again.finish(std::chrono::seconds(30));
  CAPTURE(outcome.err);
  CHECK(outcome.in_time);
  CHECK(outcome.code == 128 + SIGTERM);
  for (const pid_t rank : ranks) CHECK(test::is_gone_soon(rank));
}

TEST_CASE("--restart goes on from the newest checkpoint after a rank was killed") {
  const Runs runs;
  const Words words = {"--steps", "300", "--every",   "5",   "--ranks",   "2",
                       "--zero",  "3",   "--dropout", "0.1", "--restart", "2"};
  expect_success(runs.train("whole", words));
  test::Started started = runs.start("killed", words);
  REQUIRE(runs.wait_for_step("killed", 20));
  const std::vector<pid_t> ranks = test::children_of(started.pid());
  kill(ranks.at(1), SIGKILL);
  const test::Outcome outcome = started.finish(std::chrono::seconds(60));
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  says(outcome.err, "rank 1: killed by signal 9");
  says(outcome.err, "restart 1 of 2");
  CHECK(test::lines_with(outcome.err, "[comm]") == 1);
  CHECK(runs.steps("killed") == runs.steps("whole"));
  CHECK(runs.files("killed", 300) == runs.files("whole", 300));
}

TEST_CASE("steps that are not finite are left out by all ranks together") {
  for (const char* ranks : {"1", "3"}) {
    const Runs runs;
    const Words words = {"--steps", "8",    "--lr",       "1e30",
                         "--nan",   "skip", "--schedule", "constant",
                         "--ranks", ranks,  "--zero",     ranks[0] == '1' ? "0" : "2"};
    Words all = runs.words("run", words);
    all.erase(all.begin() + 4, all.begin() + 6);  // the common --lr
    const test::Call call = test::call(all);
    expect_success(call);
    const auto steps = runs.steps("run");
    CHECK(steps.size() == 8);
    CHECK_FALSE(steps.at(1).contains("skipped"));
    CHECK(steps.at(8)["skipped"] == true);
    says(call.out, "not finite");
  }
}

// Killed in its first save, a run has nothing to go on from and nothing to lose.
TEST_CASE("a run whose first save was interrupted begins anew") {
  const Runs runs;
  const Words words = {"--steps", "2", "--resume"};
  for (const char* left : {"step-00000002.tmp", "step-00000002"}) {
    fs::remove_all(runs.out("first"));
    fs::create_directories(runs.out("first") + "/" + left);
    const test::Call call = runs.train("first", words);
    expect_success(call);
    says(call.err, "begins at step 1");
    CHECK(runs.files("first", 2).size() == 1);
  }
}

TEST_CASE("what cannot be gone on from is refused, and says why") {
  const Runs runs;
  const Words words = {"--steps", "2"};
  const auto refused = [&](const std::string& name, const Words& more, const std::string& part,
                           int code) {
    Words all = words;
    all.insert(all.end(), more.begin(), more.end());
    const test::Call call = runs.train(name, all);
    CHECK(call.code == code);
    says(call.err, part);
  };
  refused("absent", {"--resume"}, "is not there, expected the folder of a run", 2);
  expect_success(runs.train("run", words));
  refused("run", {}, "expected a folder without", 2);
  refused("run", {"--resume", "--seed", "3"}, "seed=3, expected 0 as in the checkpoint", 2);
  refused("run", {"--resume", "--optimizer", "lion"}, "expected adamw as in the checkpoint", 2);
  refused("run", {"--resume", "--precision", "bf16"}, "expected [257, 10]", 2);
  refused("run", {"--every", "0"}, "[--every] \"0\", expected steps", 2);
  refused("run", {"--every", "5x"}, "[--every] \"5x\", expected steps", 2);
  refused("run", {"--keep", "0"}, "[--keep]", 2);
  refused("run", {"--nan", "maybe"}, "[--nan] \"maybe\", expected stop or skip", 2);
  expect_success(runs.train("run", {"--steps", "2", "--resume"}));
  expect_success(runs.train("run", {"--steps", "3", "--force"}));
  CHECK_FALSE(fs::exists(runs.out("run") + "/" + Runs::step_name(2)));
}

}  // namespace plimsoll
