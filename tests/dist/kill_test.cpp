// What the others see of a rank that dies in the middle of a sharded step.
#include <chrono>

#include <doctest/doctest.h>

#include "tests/dist/run_ranks.hpp"

namespace plimsoll::test {

TEST_CASE("trouble 39: a rank is killed in forward, backward and step") {
  for (const char* place : {"forward", "backward", "step"}) {
    const Outcome outcome =
        Started({PLIMSOLL_ENGINE_RANKS, "trouble_ranks", "3", "kill", place}, {})
            .finish(std::chrono::seconds(60));
    INFO(place, ": ", outcome.err);
    CHECK(outcome.in_time);
    CHECK(outcome.code == 137);
    CHECK(lines_with(outcome.err, "[comm]") == 1);
    CHECK(outcome.err.find("rank 1: killed by signal 9 (Killed)") != std::string::npos);
  }
}

}  // namespace plimsoll::test
