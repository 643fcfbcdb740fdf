#include "tests/dist/fault_case.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "plimsoll/checkpoint/verify.hpp"

#include "tests/dist/processes.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll::test {
namespace {

namespace fs = std::filesystem;

constexpr double kDeadline = 1.5;  // seconds, of fault_ranks

constexpr Fault kFaults[] = {
    {"kill", "killed (SIGKILL)", "PeerLost"},
    {"exit", "`_exit(9)`", "PeerLost"},
    {"exit0", "`_exit(0)`", "PeerLost"},
    {"throw", "throws", "PeerLost"},
    {"stop", "stopped (SIGSTOP)", "Timeout"},
    {"nan", "NaN", "TrainingFailed"},
    {"nospace", "cannot write (`ulimit -f`)", "TrainingFailed"},
    {"wrongorder", "units in another order", "Mismatch"},
    {"wrongcount", "another number of elements", "Mismatch"},
};
constexpr const char* kPlaces[] = {"forward", "backward", "reduce", "step", "save"};

// A norm has one element, and so has what a rank tells of a save. A rank in another order calls with the
// unit of its call before; that is the same one where a unit is reduced and within a save.
bool exists(const std::string& fault, const std::string& place) {
  if (fault == "nan") return place != "save";
  if (fault == "nospace") return place == "save";
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

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

double seconds_since_epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// What each survivor says it got, and how long after its own last collective.
int check_survivors(const Fault& fault, const Outcome& outcome) {
  int survivors = 0;
  for (const std::string& line : lines_of(outcome.out)) {
    const std::string type = value(line, "type");
    const bool is_culprit = value(line, "rank") == "2" && std::string(fault.type) == "PeerLost";
    if (type.empty() || is_culprit) continue;
    ++survivors;
    CHECK(type == fault.type);
    const double seconds = std::stod("0" + value(line, "seconds"));
    // Waits look for failures every 50 ms; the rest is a busy machine.
    CHECK(seconds < kDeadline + 3);
    if (std::string(fault.type) == "Timeout") CHECK(seconds >= kDeadline);
  }
  return survivors;
}

void check_end(const Outcome& outcome, double ended) {
  CHECK(outcome.in_time);
  int begun = 0;
  double failed = 0;
  for (const std::string& line : lines_of(outcome.out)) {
    const std::string pid = value(line, "pid");
    if (!pid.empty()) CHECK(is_gone_soon(std::stoi(pid)));
    if (line.find(" begins") != std::string::npos) ++begun;
    if (const std::string at = value(line, "fails_at"); !at.empty()) failed = std::stod(at);
  }
  CHECK(begun == 3);
  REQUIRE(failed > 0);
  CHECK(ended - failed < 5);
}

bool check_checkpoints(const std::string& folder) {
  const auto newest = checkpoint::newest_valid(folder);
  REQUIRE(newest);
  REQUIRE(newest->found);
  CHECK(newest->found->step == 2);
  CHECK_FALSE(checkpoint::ended_at(folder));
  const auto entries = checkpoint::list_checkpoints(folder);
  REQUIRE(entries);
  return std::any_of(entries->begin(), entries->end(),
                     [](const checkpoint::Entry& entry) { return entry.temporary; });
}

}  // namespace

std::vector<FaultCase> fault_cases() {
  std::vector<FaultCase> cases;
  for (const Fault& fault : kFaults) {
    for (const char* place : kPlaces) {
      if (exists(fault.name, place)) cases.push_back({fault, place});
    }
  }
  return cases;
}

void run_fault(const FaultCase& one, std::vector<std::string> launcher, bool dies,
               const std::function<void(const FaultRun&)>& use) {
  const TemporaryFolder folder;
  const TemporaryFolder scratch;
  folder.write("text", std::string(200, 'a') + "the quick brown fox");
  const std::set<std::string> memory = names_in("/dev/shm");
  std::vector<std::string> command = std::move(launcher);
  command.insert(command.end(), {one.fault.name, one.place, folder.path()});
  FaultRun run;
  run.folder = folder.path();
  run.outcome = Started(command, {"TMPDIR=" + scratch.path()}).finish(std::chrono::seconds(60));
  const double ended = seconds_since_epoch();
  CAPTURE(one.fault.name);
  CAPTURE(one.place);
  CAPTURE(run.outcome.out);
  CAPTURE(run.outcome.err);
  check_end(run.outcome, ended);
  CHECK(names_in("/dev/shm") == memory);
  CHECK(names_in(scratch.path()).empty());
  run.survivors = check_survivors(one.fault, run.outcome);
  run.has_temporary = check_checkpoints(folder.path());
  if (!dies) {
    CHECK(run.survivors >= 2);
    CHECK_FALSE(run.has_temporary);
  }
  use(run);
}

std::string cause_in(const std::string& err, const std::string& folder) {
  const std::vector<std::string> lines = lines_of(err);
  REQUIRE(lines.size() == 1);
  REQUIRE(lines[0].starts_with("[comm] "));
  std::string cause = lines[0].substr(7);
  cause = cause.substr(0, cause.find("; seen by rank"));
  const std::size_t path = cause.find(folder);
  if (path != std::string::npos) cause.replace(path, folder.size(), "DIR");
  return cause;
}

std::string when(const Fault& fault) {
  return std::string(fault.type) == "Timeout" ? "the deadline" : "at once";
}

}  // namespace plimsoll::test
