// The backend `mpi`: comm_ranks under mpirun, where the build has one.
#include "plimsoll/comm/mpi/mpi.hpp"

#include <string>

#include <doctest/doctest.h>

#include "tests/dist/run_ranks.hpp"

namespace plimsoll::test {
namespace {

Outcome run_mpi(const std::string& ranks, std::vector<std::string> arguments) {
  std::vector<std::string> command{PLIMSOLL_MPIEXEC, "-n", ranks, PLIMSOLL_COMM_RANKS, "mpi"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Started(command, {}).finish(std::chrono::seconds(90));
}

}  // namespace

TEST_CASE("mpi: conformance at 1, 2, 3 and 4 ranks" * doctest::skip(!comm::mpi_is_available())) {
  for (const char* ranks : {"1", "2", "3", "4"}) {
    const Outcome outcome = run_mpi(ranks, {"conformance"});
    INFO(ranks, " ranks: ", outcome.err, outcome.out);
    CHECK(outcome.in_time);
    CHECK(outcome.code == 0);
  }
}

TEST_CASE("mpi: typed errors for what a rank can tell, and one line" *
          doctest::skip(!comm::mpi_is_available())) {
  struct Expected {
    const char* fault;
    const char* text;  // on two ranks at least
  };
  for (const Expected& one : {Expected{"stall", "type=Timeout culprit=2"},
                              {"wrongorder", "type=Mismatch culprit=2"},
                              {"wrongcount", "type=Mismatch culprit=2"},
                              {"throw", "type=PeerLost culprit=2"}}) {
    const Outcome outcome = run_mpi("3", {"fault", one.fault});
    INFO(one.fault, ": ", outcome.err, outcome.out);
    CHECK(outcome.in_time);
    CHECK(outcome.code == 3);
    CHECK(lines_with(outcome.out, one.text) >= 2);
    CHECK(lines_with(outcome.err, "[comm] rank 2: ") == 1);
    CHECK(lines_with(outcome.err, "") == 1);
  }
}

TEST_CASE("mpi: a rank that dies ends the job" * doctest::skip(!comm::mpi_is_available())) {
  for (const char* fault : {"kill", "exit"}) {
    const Outcome outcome = run_mpi("3", {"fault", fault});
    INFO(fault, ": ", outcome.err, outcome.out);
    CHECK(outcome.in_time);
    CHECK(outcome.code == 9);
  }
}

TEST_CASE("mpi: a code of one rank is the job's, and is told" *
          doctest::skip(!comm::mpi_is_available())) {
  const Outcome outcome = run_mpi("3", {"code", "5"});
  INFO(outcome.err, outcome.out);
  CHECK(outcome.code == 5);
  CHECK(outcome.err == "[comm] rank 1: ended with exit code 5\n");
}

TEST_CASE("mpi: refuses torchrun's ranks") {
  const Outcome torchrun = run_ranks({"mpi", "conformance"}, {"RANK=0", "WORLD_SIZE=2"});
  CHECK(torchrun.code == 2);
  CHECK(torchrun.err.find("Hint: start the program with mpirun -n R") != std::string::npos);
}

TEST_CASE("mpi: a build without it says so" * doctest::skip(comm::mpi_is_available())) {
  const Outcome outcome = run_ranks({"mpi", "conformance"});
  CHECK(outcome.code == 3);
  CHECK(outcome.err.find("[mpi] this build has no MPI") != std::string::npos);
}

}  // namespace plimsoll::test
