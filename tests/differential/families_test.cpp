// Every planned transformer family: random small configs and jobs, calculated against measured and
// dry-run, event by event. PLIMSOLL_JOBS: jobs per family; PLIMSOLL_FAMILY: only this one.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/config.hpp"

#include "tests/differential/differ.hpp"
#include "tests/differential/family_configs.hpp"
#include "tests/differential/random_jobs.hpp"

namespace plimsoll {
namespace {

int jobs_per_family() {
  const char* wanted = std::getenv("PLIMSOLL_JOBS");
  return wanted == nullptr ? 20 : std::atoi(wanted);
}

network::NetworkSpec read(const nlohmann::json& config) {
  const auto spec = formats::read_config(config.dump(), "config.json");
  REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : format_error(spec.error())));
  return *spec;
}

// fp32 and bf16 in turn; other choices as the seed has them.
tests::RandomJob next_job(tests::Chooser& choose, const network::NetworkSpec& spec, int number) {
  while (true) {
    tests::RandomJob random{spec, tests::random_choices(choose, spec)};
    if (number % 4 < 2) {
      random.job.precision = number % 2 == 0 ? plan::Precision::kFp32 : plan::Precision::kBf16;
    }
    if (plan::validate(random.job, spec)) return random;
  }
}

}  // namespace

TEST_CASE("random jobs of every family: calculated = measured = dry-run, event by event") {
  tests::prepare_library();
  const char* only = std::getenv("PLIMSOLL_FAMILY");
  std::uint64_t seed = 0;
  for (const std::string& type : tests::family_types()) {
    ++seed;
    if (only != nullptr && type != only) continue;
    tests::Chooser choose(seed);
    for (int i = 0; i < jobs_per_family(); ++i) {
      const nlohmann::json config = tests::random_config(type, choose);
      const tests::RandomJob random = next_job(choose, read(config), i);
      INFO(config.dump());
      INFO(tests::describe(random));
      CHECK(tests::text_of(tests::calculated_against(random.spec, random.job, at::kCPU)) ==
            "equal");
      CHECK(tests::text_of(tests::calculated_against(random.spec, random.job, at::kMeta)) ==
            "equal");
    }
  }
}

TEST_CASE("every planned model type has random jobs") {
  const std::vector<std::string> types = tests::family_types();
  for (const std::string& planned : formats::planned_model_types()) {
    CAPTURE(planned);
    CHECK(std::find(types.begin(), types.end(), planned) != types.end());
  }
}

}  // namespace plimsoll
