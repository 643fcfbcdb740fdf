// Image networks: calculated, dry-run and measured, event by event.
#include <doctest/doctest.h>

#include "plimsoll/formats/inline_model.hpp"

#include "tests/differential/differ.hpp"

namespace plimsoll {

TEST_CASE("cnn: calculated = dry-run = measured, batches, precisions, every option") {
  tests::prepare_library();
  for (const char* text :
       {"cnn:channels=16-24-32,image=32,classes=10,norm=batch,bias=off,pool=last",
        "cnn:channels=16-24-32,image=32,classes=10,norm=batch,bias=off,pool=last,relu=inplace",
        "cnn:channels=5,image=8,classes=3", "cnn:channels=4-7,image=6,classes=2,pool=last"}) {
    const auto spec = formats::read_inline_model(text);
    REQUIRE(spec.has_value());
    for (auto precision : {plan::Precision::kFp32, plan::Precision::kBf16, plan::Precision::kMixed,
                           plan::Precision::kFp64}) {
      for (std::int64_t batch : {1, 2, 5}) {
        plan::Job job;
        job.batch = batch;
        job.precision = precision;
        CAPTURE(text);
        CAPTURE(plan::name(precision));
        CAPTURE(batch);
        CHECK(tests::text_of(tests::calculated_against(*spec, job, at::kCPU)) == "equal");
        CHECK(tests::text_of(tests::calculated_against(*spec, job, at::kMeta)) == "equal");
      }
    }
  }
}

}  // namespace plimsoll
