// The same faults under mpirun. Who kills a rank there kills all: that an end is not silent is what
// last words and the missing mark of the end are for.
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "plimsoll/checkpoint/verify.hpp"
#include "plimsoll/comm/last_words.hpp"

#include "tests/checked_table.hpp"
#include "tests/dist/fault_case.hpp"

namespace plimsoll::test {
namespace {

bool is_death(const std::string& fault) {
  return fault == "kill" || fault == "exit" || fault == "exit0";
}

std::string typed_row(const FaultCase& one, const FaultRun& run) {
  CHECK(run.outcome.code != 0);
  // A stopped rank is killed by the launcher and cannot remove its last words; nobody else leaves any.
  const auto words = comm::last_words(run.folder);
  CHECK(words.has_value() == (std::string(one.fault.type) == "Timeout"));
  return fmt::format("| {} | {} | {} | {} | stderr | `{}` | {} |\n", one.fault.text, one.place,
                     one.fault.type, when(one.fault), cause_in(run.outcome.err, run.folder),
                     run.outcome.code);
}

std::string death_row(const FaultCase& one, const FaultRun& run) {
  const bool success = std::string(one.fault.name) == "exit0";
  if (!success) CHECK(run.outcome.code == 9);
  CHECK(run.survivors == 0);
  const auto words = comm::last_words(run.folder);
  REQUIRE(words);
  CHECK(words->rank == 2);
  CHECK(words->step == 4);
  const std::string cause = comm::format_cause(*words).substr(7);
  return fmt::format("| {} | {} | nothing: killed | at once | `checkpoint list` | `{}` | {} |\n",
                     one.fault.text, one.place, cause, success ? "0 or 9" : "9");
}

// What a start after a death finds and takes away.
void check_next_start(const std::string& folder) {
  const Outcome next = Started({PLIMSOLL_MPIEXEC, "-n", "3", PLIMSOLL_ENGINE_RANKS, "fault_ranks",
                                "mpi", "none", "save", folder},
                               {})
                           .finish(std::chrono::seconds(60));
  CAPTURE(next.err);
  CHECK(next.code == 0);
  CHECK(next.out.find("told: the run before did not come to its end") != std::string::npos);
  CHECK(next.out.find("told: resumed after step 2") != std::string::npos);
  CHECK(checkpoint::ended_at(folder) == 6);
  CHECK_FALSE(comm::last_words(folder));
  const auto entries = checkpoint::list_checkpoints(folder);
  REQUIRE(entries);
  for (const auto& entry : *entries) CHECK_FALSE(entry.temporary);
}

}  // namespace

TEST_CASE("mpi: troubles 39: every fault in every place ends all survivors, and is documented") {
  std::string now =
      "| the rank | in | survivors get | after | told by | first cause | exit code |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const FaultCase& one : fault_cases()) {
    const bool death = is_death(one.fault.name);
    run_fault(one, {PLIMSOLL_MPIEXEC, "-n", "3", PLIMSOLL_ENGINE_RANKS, "fault_ranks", "mpi"},
              death, [&](const FaultRun& run) {
                now += death ? death_row(one, run) : typed_row(one, run);
                if (death && one.place == "save") check_next_start(run.folder);
              });
  }
  check_tables("docs/faults.md", {{"mpi", now}});
}

}  // namespace plimsoll::test
