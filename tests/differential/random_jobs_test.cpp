// Whole random jobs, calculated against measured: every event of two steps.
#include "tests/property/random_jobs.hpp"

#include <cstdlib>

#include <doctest/doctest.h>

#include "tests/differential/differ.hpp"

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

test::RandomJob random_job(std::uint64_t seed) {
  test::Dice dice(seed);
  return test::random_job(dice, test::RunsOn::kCpu);
}

}  // namespace

TEST_CASE("300 random jobs: calculated = measured, every event of two steps") {
  tests::prepare_library();
  const Seeds seeds;
  for (std::uint64_t seed = seeds.first; seed < seeds.last; ++seed) {
    const test::RandomJob random = random_job(seed);
    CAPTURE(seed);
    CAPTURE(test::to_text(random));
    CHECK(tests::text_of(tests::calculated_against(random.spec, random.job, at::kCPU)) == "equal");
  }
}

TEST_CASE("300 random jobs: calculated = dry-run, every event of two steps") {
  tests::prepare_library();
  const Seeds seeds;
  for (std::uint64_t seed = seeds.first; seed < seeds.last; ++seed) {
    const test::RandomJob random = random_job(seed);
    CAPTURE(seed);
    CAPTURE(test::to_text(random));
    CHECK(tests::text_of(tests::calculated_against(random.spec, random.job, at::kMeta)) == "equal");
  }
}

}  // namespace plimsoll
