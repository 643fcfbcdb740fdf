// Full-size models, dry: calculated = dry-run to the byte, in seconds and without their memory.
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "plimsoll/formats/model_source.hpp"

#include "tests/differential/differ.hpp"

namespace plimsoll {
namespace {

// Highest resident memory of this process so far, in bytes.
std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

}  // namespace

TEST_CASE("llama-3-8b and llama-3-70b at full size: calculated = dry-run, under 1 GB") {
  tests::prepare_library();
  for (const char* name : {"llama-3-8b", "llama-3-70b"}) {
    const auto spec = formats::load_model(name);
    REQUIRE(spec.has_value());
    plan::Job job;
    job.batch = 1;
    job.sequence = 4096;
    job.precision = plan::Precision::kMixed;
    CAPTURE(name);
    CHECK(tests::text_of(tests::calculated_against(*spec, job, at::kMeta)) == "equal");
  }
  CHECK(peak_resident_bytes() < 1'000'000'000);
}

}  // namespace plimsoll
