// The backend `shm`: ranks are processes of comm_ranks (ranks_main.cpp).
#include <csignal>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "tests/dist/processes.hpp"
#include "tests/dist/run_ranks.hpp"

namespace plimsoll::test {
namespace {

// No line of the survivors and no launcher line is missing, and the cause is named once.
void check_first_cause(const Outcome& outcome, const std::string& cause) {
  INFO("stdout: ", outcome.out);
  INFO("stderr: ", outcome.err);
  CHECK(outcome.in_time);
  CHECK(outcome.code != 0);
  CHECK(lines_with(outcome.err, "[comm]") == 1);
  CHECK(outcome.err.find(cause) != std::string::npos);
}

std::vector<int> pids_in(const std::string& text) {
  std::vector<int> pids;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word.starts_with("pid=")) pids.push_back(std::stoi(word.substr(4)));
  }
  return pids;
}

}  // namespace

TEST_CASE("shm: conformance at 1, 2, 3, 4 and 8 ranks") {
  for (const char* ranks : {"1", "2", "3", "4", "8"}) {
    const Outcome outcome = run_ranks({ranks, "conformance", ranks[0] == '3' ? "checked" : ""});
    INFO(ranks, " ranks: ", outcome.err);
    CHECK(outcome.in_time);
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("shm: a rank that is killed is named to all survivors, at once") {
  const Outcome outcome = run_ranks({"3", "fault", "kill"});
  check_first_cause(outcome, "rank 2: killed by signal 9 (Killed); operation=all_gather");
  CHECK(outcome.err.find("unit=layers.0, step=2") != std::string::npos);
  CHECK(outcome.code == 137);
  CHECK(lines_with(outcome.out, "type=PeerLost culprit=2") == 2);
}

TEST_CASE("shm: a rank that exits in its work, with any code, is an error") {
  const Outcome with_code = run_ranks({"3", "fault", "exit"});
  check_first_cause(with_code, "rank 2: ended with exit code 9");
  CHECK(with_code.code == 9);
  CHECK(lines_with(with_code.out, "type=PeerLost culprit=2") == 2);

  const Outcome with_0 = run_ranks({"3", "fault", "exit0"});
  check_first_cause(with_0, "rank 2: ended with exit code 0 in the middle of its work");
  CHECK(with_0.code == 1);
  CHECK(lines_with(with_0.out, "type=PeerLost culprit=2") == 2);
}

TEST_CASE("shm: a rank that throws ends the world with its message") {
  const Outcome outcome = run_ranks({"3", "fault", "throw"});
  check_first_cause(outcome, "rank 2: injected fault");
  CHECK(outcome.code == 3);
  CHECK(lines_with(outcome.out, "type=PeerLost culprit=2") == 2);
}

TEST_CASE("shm: a stopped or stalled rank is a Timeout at the deadline, and is killed") {
  for (const char* fault : {"stop", "stall"}) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = run_ranks({"3", "fault", fault});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    check_first_cause(outcome,
                      "rank 2: did not arrive within 2 s; operation=reduce_scatter, "
                      "unit=layers.1, step=2");
    CHECK(lines_with(outcome.out, "type=Timeout culprit=2") == 2);
    CHECK(outcome.code == 3);
    CHECK(took.count() >= 2.0);
    CHECK(took.count() < 20.0);  // 2 s and 1 s of grace, on a busy machine
  }
}

TEST_CASE("shm: another order, another count: Mismatch naming both calls") {
  for (const char* scenario : {"fault", "checked-fault"}) {
    const Outcome order = run_ranks({"3", scenario, "wrongorder"});
    check_first_cause(order, "reduce_scatter of unit=layers.");
    CHECK(lines_with(order.out, "type=Mismatch culprit=2") == 3);
    CHECK(order.err.find("unit=layers.1 (9,000 fp32)") != std::string::npos);
    CHECK(order.err.find("unit=layers.0 (9,000 fp32)") != std::string::npos);

    const Outcome count = run_ranks({"3", scenario, "wrongcount"});
    check_first_cause(count, "9,000 fp32");
    CHECK(lines_with(count.out, "type=Mismatch culprit=2") == 3);
    CHECK(count.err.find("8,997 fp32") != std::string::npos);
  }
}

TEST_CASE("shm: the segment stays within its stated bound") {
  const Outcome outcome = run_ranks({"2", "memory"});
  INFO(outcome.out, outcome.err);
  CHECK(outcome.code == 0);
}

TEST_CASE("shm: a signal to the launcher reaches every rank once, and all may save") {
  Started started(ranks_command({"3", "signal"}), {});
  REQUIRE(started.wait_for_lines("ready", 3));
  for (const int signal : {SIGTERM}) kill(started.pid(), signal);
  const Outcome outcome = started.finish(std::chrono::seconds(30));
  INFO(outcome.out, outcome.err);
  CHECK(outcome.code == 0);
  CHECK(lines_with(outcome.out, "signals=1 saved") == 3);
}

TEST_CASE("shm: ranks die with their launcher") {
  Started started(ranks_command({"3", "sleep"}), {});
  REQUIRE(started.wait_for_lines("ready", 3));
  kill(started.pid(), SIGKILL);
  const Outcome outcome = started.finish(std::chrono::seconds(30));
  CHECK(outcome.code == 137);
  const std::vector<int> pids = pids_in(outcome.out);
  REQUIRE(pids.size() == 3);
  for (const int pid : pids) CHECK(is_gone_soon(pid));
}

TEST_CASE("shm: a rank's exit code is the launcher's") {
  const Outcome outcome = run_ranks({"2", "code", "5"});
  check_first_cause(outcome, "rank 1: ended with exit code 5");
  CHECK(outcome.code == 5);
}

TEST_CASE("shm: no rank but the first reads the launcher's stdin") {
  const Outcome outcome = run_ranks({"3", "stdin"}, {}, std::chrono::seconds(30));
  CHECK(outcome.in_time);
  CHECK(lines_with(outcome.out, "rank=1 read=0") == 1);
  CHECK(lines_with(outcome.out, "rank=2 read=0") == 1);
}

TEST_CASE("shm: refuses torchrun's ranks and impossible numbers") {
  const Outcome torchrun = run_ranks({"2", "memory"}, {"RANK=0", "WORLD_SIZE=2"});
  CHECK(torchrun.code == 2);
  CHECK(torchrun.err.find("Hint: run plimsoll itself with --ranks R") != std::string::npos);
  const Outcome none = run_ranks({"0", "memory"});
  CHECK(none.code == 2);
  CHECK(none.err.find("[--ranks] ranks=0, expected 1 .. 256") != std::string::npos);
}

}  // namespace plimsoll::test
