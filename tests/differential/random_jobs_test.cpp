// Whole random jobs, calculated against measured: every event of two steps.
#include "tests/differential/random_jobs.hpp"

#include <cstdlib>

#include <doctest/doctest.h>

#include "tests/differential/differ.hpp"
#include "tests/property/random_jobs.hpp"

namespace plimsoll {
namespace {

// 300 in the fast suite; PLIMSOLL_JOBS runs more, PLIMSOLL_SEED one.
struct Seeds {
  std::uint64_t first = 0;
  std::uint64_t last = 300;
  Seeds() {
    if (const char* jobs = std::getenv("PLIMSOLL_JOBS")) last = std::strtoull(jobs, nullptr, 10);
    if (const char* seed = std::getenv("PLIMSOLL_SEED")) {
      first = std::strtoull(seed, nullptr, 10);
      last = first + 1;
    }
  }
};

}  // namespace

TEST_CASE("300 random jobs: calculated = measured, every event of two steps") {
  tests::prepare_library();
  const Seeds seeds;
  for (std::uint64_t seed = seeds.first; seed < seeds.last; ++seed) {
    const tests::RandomJob random = tests::random_job(seed);
    CAPTURE(seed);
    CAPTURE(tests::describe(random));
    CHECK(tests::text_of(tests::calculated_against(random.spec, random.job, at::kCPU)) == "equal");
  }
}

TEST_CASE("300 random jobs: calculated = dry-run, every event of two steps") {
  tests::prepare_library();
  const Seeds seeds;
  for (std::uint64_t seed = seeds.first; seed < seeds.last; ++seed) {
    const tests::RandomJob random = tests::random_job(seed);
    CAPTURE(seed);
    CAPTURE(tests::describe(random));
    CHECK(tests::text_of(tests::calculated_against(random.spec, random.job, at::kMeta)) == "equal");
  }
}

// The jobs of the property tests that run here: image networks and odd sizes of everything.
TEST_CASE("300 random jobs of the planner's kind: calculated = measured = dry-run") {
  tests::prepare_library();
  const Seeds seeds;
  for (std::uint64_t seed = seeds.first; seed < seeds.last; ++seed) {
    test::Dice dice(seed);
    const test::RandomJob random = test::random_job(dice, test::RunsOn::kCpu);
    CAPTURE(seed);
    CAPTURE(test::to_text(random));
    CHECK(tests::text_of(tests::calculated_against(random.spec, random.job, at::kCPU)) == "equal");
    CHECK(tests::text_of(tests::calculated_against(random.spec, random.job, at::kMeta)) == "equal");
  }
}

}  // namespace plimsoll
