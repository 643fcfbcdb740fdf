// What a run says when it measures other bytes than were planned.
#include "plimsoll/engine/run/difference_cause.hpp"

#include <doctest/doctest.h>

namespace plimsoll {

TEST_CASE(
    "a difference is explained by the version, by 16-bit products, by threads, or not at all") {
  const auto contains = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  plan::Job job;
  engine::LibraryState state{"2.13.0", true, false, true};
  CHECK(engine::difference_cause(job, state, true).empty());
  for (auto precision : {plan::Precision::kMixed, plan::Precision::kBf16}) {
    job.precision = precision;
    contains(engine::difference_cause(job, state, true), "oneDNN's scratch for 16-bit products");
    CHECK(engine::difference_cause(job, state, false).empty());
  }
  state.reference_kernels = true;
  CHECK(engine::difference_cause(job, state, true).empty());
  state = {"2.13.0", true, false, false};
  CHECK(engine::difference_cause(job, state, true).empty());
  job.threads = 2;
  contains(engine::difference_cause(job, state, true), "worker threads");
  state.known = false;
  state.version = "2.99.0";
  contains(engine::difference_cause(job, state, false), "libtorch 2.99.0");
}

}  // namespace plimsoll
