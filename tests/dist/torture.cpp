// Kills a training run again and again and lets it go on from what is there.
//   torture [--kills N] [--seed S]      30 and the time; exit 0 when nothing was ever lost
//
// `plimsoll train` of a tiny model with dropout, 2 ranks at stage 3, a checkpoint every 2 steps; runs
// take turns in saving at once and in the background. SIGKILL hits a random rank, all ranks or the
// launcher: half of the kills at a random instant, half within a few milliseconds after a save has
// begun. After each one
//   - everything that was started ends, and nothing of it is left;
//   - there is a complete checkpoint that is no more than the interval behind the last step told (twice
//     the interval in the background), unless the run was younger than that;
//   - `--resume` goes on from it;
//   - a run that came to its end has the losses and the checkpoint of one that nobody disturbed,
//     bit for bit.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/checkpoint/verify.hpp"

#include "tests/dist/processes.hpp"
#include "tests/dist/run_ranks.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;
using namespace plimsoll;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr int kSteps = 24;
constexpr int kInterval = 2;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::string file_contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// By step; a line that a kill cut is left out.
std::map<int, double> losses_in(const std::string& folder) {
  std::map<int, double> losses;
  std::ifstream file(folder + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object()) losses[json["step"].get<int>()] = json["loss"].get<double>();
  }
  return losses;
}

// What a run leaves: losses, and the files of its last checkpoint.
struct Result {
  std::map<int, double> losses;
  std::map<std::string, std::string> files;
  bool operator==(const Result&) const = default;
};

Result result_of(const std::string& folder) {
  Result result{losses_in(folder), {}};
  const auto newest = checkpoint::newest_valid(folder);
  if (!newest || !newest->found || newest->found->step != kSteps) fail("no checkpoint at the end");
  for (const auto& entry : fs::directory_iterator(newest->found->folder)) {
    result.files[entry.path().filename().string()] = file_contents(entry.path());
  }
  return result;
}

class Torture {
 public:
  Torture(int kills, unsigned seed) : kills_(kills), seed_(seed), random_(seed) {
    text_ = folder_.write("text", std::string(60, 'a') + "the quick brown fox jumps over the dog");
  }

  void run() {
    measure();
    while (done_ < kills_) attempt();
    finish_run();
    fmt::print(
        "{} kills, {} of them during saves; {} runs came to their end, equal bit for bit; "
        "seed {}\n",
        done_, during_saves_, ends_, seed_);
  }

 private:
  std::string out() const { return folder_.path() + "/run"; }

  std::vector<std::string> words() const {
    std::vector<std::string> words = {PLIMSOLL_PROGRAM,
                                      "train",
                                      "minigpt:d=8,L=2,V=256,s=8,heads=2",
                                      "--data",
                                      text_,
                                      "--steps",
                                      std::to_string(kSteps),
                                      "--lr",
                                      "1e-2",
                                      "--dropout",
                                      "0.1",
                                      "--ranks",
                                      "2",
                                      "--zero",
                                      "3",
                                      "--every",
                                      std::to_string(kInterval),
                                      "--keep",
                                      "2",
                                      "--resume",
                                      "--out",
                                      out()};
    if (background_) words.emplace_back("--snapshot");
    return words;
  }

  int random(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

  void begin_run() {
    fs::remove_all(out());
    fs::create_directories(out());
    background_ = !background_;
  }

  // The undisturbed run, and how long it takes.
  void measure() {
    begin_run();
    const auto begin = Clock::now();
    const test::Outcome outcome = test::Started(words(), {}).finish(std::chrono::seconds(60));
    if (outcome.code != 0) fail(outcome.err);
    duration_ = std::chrono::duration_cast<Milliseconds>(Clock::now() - begin);
    undisturbed_ = result_of(out());
    begin_run();
  }

  // Starts the run, or lets it go on, and kills once; a run that ended before is compared.
  void attempt() {
    test::Started started(words(), {});
    const bool during_save = done_ % 2 == 1;
    const bool waited = during_save ? wait_for_save(started.pid()) : wait_at_random(started.pid());
    if (!waited) {
      const test::Outcome outcome = started.finish(std::chrono::seconds(60));
      return ended(outcome);
    }
    const std::vector<pid_t> ranks = test::children_of(started.pid());
    strike(started.pid(), ranks);
    const test::Outcome outcome = started.finish(std::chrono::seconds(60));
    if (!outcome.in_time) fail("a run hangs after a kill: " + outcome.err);
    for (pid_t rank : ranks) {
      if (!test::is_gone_soon(rank)) fail("a rank outlives its run");
    }
    if (outcome.code == 0) return ended(outcome);
    ++done_;
    during_saves_ += during_save ? 1 : 0;
    check_progress();
  }

  bool wait_at_random(pid_t pid) {
    const auto end = Clock::now() + Milliseconds(random(static_cast<int>(duration_.count())));
    while (Clock::now() < end) {
      if (test::is_gone(pid)) return false;
      std::this_thread::sleep_for(Milliseconds(1));
    }
    return true;
  }

  // Until a temporary folder is there, after a random number of saves, and a moment more.
  bool wait_for_save(pid_t pid) {
    int saves = 1 + random(4);
    std::string last;
    while (!test::is_gone(pid)) {
      const std::string open = open_save();
      if (!open.empty() && open != last && --saves == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random(6000)));
        return true;
      }
      if (!open.empty()) last = open;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return false;
  }

  std::string open_save() const {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(out(), none)) {
      if (entry.path().extension() == ".tmp") return entry.path().filename().string();
    }
    return "";
  }

  void strike(pid_t launcher, const std::vector<pid_t>& ranks) {
    const int whom = random(3);
    if (whom == 0 || ranks.empty()) kill(launcher, SIGKILL);
    if (ranks.empty()) return;
    if (whom == 1) {
      for (pid_t rank : ranks) kill(rank, SIGKILL);
    } else if (whom == 2) {
      kill(ranks[static_cast<std::size_t>(random(static_cast<int>(ranks.size())))], SIGKILL);
    }
  }

  void check_progress() const {
    const std::map<int, double> losses = losses_in(out());
    const int told = losses.empty() ? 0 : losses.rbegin()->first;
    const int allowed = background_ ? 2 * kInterval : kInterval;
    const auto newest = checkpoint::newest_valid(out());
    if (!newest) fail(format_error(newest.error()));
    const std::int64_t step = newest->found ? newest->found->step : 0;
    if (told - step > allowed) {
      fail(fmt::format("step {} was told, the newest checkpoint is of step {}", told, step));
    }
  }

  void finish_run() {
    const test::Outcome outcome = test::Started(words(), {}).finish(std::chrono::seconds(60));
    ended(outcome);
  }

  void ended(const test::Outcome& outcome) {
    if (outcome.code != 0) fail("a run fails: " + outcome.err);
    if (!(result_of(out()) == undisturbed_)) fail("a disturbed run ended differently");
    ++ends_;
    begin_run();
  }

  const int kills_;
  const unsigned seed_;
  std::mt19937 random_;
  const test::TemporaryFolder folder_;
  std::string text_;
  Milliseconds duration_{0};
  Result undisturbed_;
  bool background_ = true;
  int done_ = 0;
  int during_saves_ = 0;
  int ends_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  int kills = 30;
  auto seed = static_cast<unsigned>(std::time(nullptr));
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--kills") == 0) kills = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
  }
  if (kills < 1 || argc % 2 == 0) {
    fmt::print(stderr, "usage: torture [--kills N] [--seed S]\n");
    return 2;
  }
  try {
    Torture(kills, seed).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "torture: seed {}: {}\n", seed, error.what());
    return 1;
  }
  return 0;
}
