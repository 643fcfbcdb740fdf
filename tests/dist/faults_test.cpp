// Faults x places in a training step, on shared memory: what survivors see, and that nothing stays
// behind. docs/faults.md is written from what happens here: UPDATE_GOLDEN=1 rewrites it.
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/checked_table.hpp"
#include "tests/dist/fault_case.hpp"

namespace plimsoll::test {

TEST_CASE("troubles 39: every fault in every place ends all survivors, and is documented") {
  std::string now =
      "| the rank | in | survivors get | after | printed, once | exit code |\n"
      "|---|---|---|---|---|---|\n";
  for (const FaultCase& one : fault_cases()) {
    run_fault(one, {PLIMSOLL_ENGINE_RANKS, "fault_ranks", "3"}, false, [&](const FaultRun& run) {
      CHECK(run.outcome.code != 0);
      now += fmt::format("| {} | {} | {} | {} | `{}` | {} |\n", one.fault.text, one.place,
                         one.fault.type, when(one.fault), cause_in(run.outcome.err, run.folder),
                         run.outcome.code);
    });
  }
  check_tables("docs/faults.md", {{"shm", now}});
}

}  // namespace plimsoll::test
