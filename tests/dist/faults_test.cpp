// Faults x places in a training step, on shared memory: what survivors see, and that nothing stays
// behind. docs/faults.md is written from what happens here: UPDATE_GOLDEN=1 rewrites it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "plimsoll/checkpoint/verify.hpp"

#include "tests/dist/processes.hpp"
#include "tests/dist/run_ranks.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDocument = "docs/faults.md";
constexpr const char* kBegin = "<!-- table: shm -->\n";
constexpr const char* kRanks = "3";
constexpr double kDeadline = 1.5;  // seconds, of fault_ranks

struct Fault {
  const char* name;
  const char* text;  // in the document
  const char* type;  // of what survivors get
};
constexpr Fault kFaults[] = {
    {"kill", "killed (SIGKILL)", "PeerLost"},
    {"exit", "`_exit(9)`", "PeerLost"},
    {"exit0", "`_exit(0)`", "PeerLost"},
    {"throw", "throws", "PeerLost"},
    {"stop", "stopped (SIGSTOP)", "Timeout"},
    {"nan", "NaN", "TrainingFailed"},
    {"wrongorder", "units in another order", "Mismatch"},
    {"wrongcount", "another number of elements", "Mismatch"},
};
constexpr const char* kPlaces[] = {"forward", "backward", "reduce", "step", "save"};

// A barrier has no elements, and a norm has one. A rank in another order calls with the unit of its
// call before; that is the same one where a unit is reduced and between the barriers of a save.
bool exists(const std::string& fault, const std::string& place) {
  if (fault == "nan") return place != "save";
  if (fault == "wrongorder") return place != "reduce" && place != "save";
  if (fault == "wrongcount") return place != "step" && place != "save";
  return true;
}

std::string value(const std::string& line, const std::string& key) {
  const std::size_t begin = line.find(key + "=");
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + key.size() + 1;
  return line.substr(from, line.find(' ', from) - from);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The one line that the launcher printed, without who noticed: of several the first.
std::string cause_in(const std::string& err) {
  const std::vector<std::string> lines = lines_of(err);
  REQUIRE(lines.size() == 1);
  REQUIRE(lines[0].starts_with("[comm] "));
  const std::string cause = lines[0].substr(7);
  return cause.substr(0, cause.find("; seen by rank"));
}

std::set<std::string> shared_memory() {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/dev/shm", none)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

void check_nothing_left(const std::string& folder, const Outcome& outcome) {
  for (const std::string& line : lines_of(outcome.out)) {
    const std::string pid = value(line, "pid");
    if (!pid.empty()) CHECK(is_gone_soon(std::stoi(pid)));
  }
  const auto newest = checkpoint::newest_valid(folder);
  REQUIRE(newest);
  REQUIRE(newest->found);
  CHECK(newest->found->step == 2);
  const auto entries = checkpoint::list_checkpoints(folder);
  REQUIRE(entries);
  for (const auto& entry : *entries) CHECK_FALSE(entry.temporary);
}

// The row of one case, after all survivors were heard.
std::string row_of(const Fault& fault, const std::string& place) {
  const TemporaryFolder folder;
  folder.write("text", std::string(200, 'a') + "the quick brown fox");
  const Outcome outcome =
      Started({PLIMSOLL_FAULT_RANKS, kRanks, fault.name, place, folder.path()}, {})
          .finish(std::chrono::seconds(60));
  CAPTURE(fault.name);
  CAPTURE(place);
  CAPTURE(outcome.out);
  CAPTURE(outcome.err);
  CHECK(outcome.in_time);
  CHECK(outcome.code != 0);
  int survivors = 0;
  double longest = 0;
  for (const std::string& line : lines_of(outcome.out)) {
    if (value(line, "rank") == "2" && std::string(fault.type) == "PeerLost") continue;
    ++survivors;
    CHECK(value(line, "type") == fault.type);
    longest = std::max(longest, std::stod("0" + value(line, "seconds")));
  }
  CHECK(survivors >= 2);
  const bool late = std::string(fault.type) == "Timeout";
  // Waits look for failures every 50 ms; the rest is a busy machine.
  CHECK(longest < kDeadline + 3);
  if (late) CHECK(longest >= kDeadline);
  check_nothing_left(folder.path(), outcome);
  return fmt::format("| {} | {} | {} | {} | `{}` | {} |\n", fault.text, place, fault.type,
                     late ? "the deadline" : "at once", cause_in(outcome.err), outcome.code);
}

std::string table() {
  std::string text =
      "| the rank | in | survivors get | after | printed, once | exit code |\n"
      "|---|---|---|---|---|---|\n";
  for (const Fault& fault : kFaults) {
    for (const char* place : kPlaces) {
      if (exists(fault.name, place)) text += row_of(fault, place);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("troubles 39: every fault in every place ends all survivors, and is documented") {
  const std::set<std::string> before = shared_memory();
  const std::string now = table();
  CHECK(shared_memory() == before);
  std::ifstream file(kDocument);
  const std::string document((std::istreambuf_iterator<char>(file)), {});
  const std::size_t begin = document.find(kBegin);
  REQUIRE(begin != std::string::npos);
  const std::size_t first = begin + std::string(kBegin).size();
  const std::size_t end = document.find("\n\n", first - 1) + 1;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(kDocument) << document.substr(0, first) << now << document.substr(end);
    return;
  }
  CHECK(document.substr(first, end - first) == now);
}

}  // namespace plimsoll::test
