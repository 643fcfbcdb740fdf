// The searches behind `plimsoll fit`, on laws whose answer is known, and figures that others derived.
#include <cstdint>
#include <memory>
#include <optional>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/plan/fit/fit_report.hpp"
#include "plimsoll/plan/plan.hpp"

namespace plimsoll {
namespace {

plan::NeedOf law(std::int64_t available, std::int64_t (*bytes)(std::int64_t), int& asked) {
  return [=, &asked](std::int64_t value) -> std::optional<plan::Need> {
    ++asked;
    plan::Need need;
    need.bytes = need.requested = bytes(value);
    need.available = available;
    need.fits = need.bytes <= available;
    return need;
  };
}

std::optional<std::int64_t> by_counting(std::int64_t available, std::int64_t (*bytes)(std::int64_t),
                                        std::int64_t most) {
  std::optional<std::int64_t> largest;
  for (std::int64_t value = 1; value <= most && bytes(value) <= available; ++value) largest = value;
  return largest;
}

TEST_CASE("the largest value that fits, whatever the law") {
  std::int64_t (*const laws[])(std::int64_t) = {
      [](std::int64_t n) { return 100 + 7 * n; },
      [](std::int64_t n) { return n == 1 ? 120 : 100 + 7 * n; },  // the law begins at 2
      [](std::int64_t n) { return 10 + n * n; },
      [](std::int64_t n) { return 100 + 64 * ((n + 15) / 16); },  // rounded up
      [](std::int64_t) { return std::int64_t{50}; },
  };
  for (const auto bytes : laws) {
    for (const std::int64_t available : {0, 49, 50, 51, 107, 113, 114, 121, 500, 501, 9999}) {
      for (const std::int64_t most : {1, 2, 3, 100, 5000}) {
        CAPTURE(available);
        CAPTURE(most);
        int asked = 0;
        CHECK(plan::largest_that_fits(law(available, bytes, asked), most) ==
              by_counting(available, bytes, most));
        CHECK(asked <= 40);
      }
    }
  }
}

TEST_CASE("a straight line takes five walks") {
  int asked = 0;
  const auto need_of = law(
      1'000'000'000'000, [](std::int64_t n) { return 1'000'000 + 12'345 * n; }, asked);
  CHECK(plan::largest_that_fits(need_of, std::int64_t{1} << 40) == 81'004'374);
  CHECK(asked == 5);
}

plan::Job job_on(std::int64_t bytes, const network::NetworkSpec& spec) {
  plan::Job job;
  job.sequence = spec.positions;
  job.device = std::make_shared<const hardware::Device>(hardware::device_of_size(bytes, "test"));
  job.reserve = 0;
  return job;
}

TEST_CASE("closed forms give the batches of the memory notebook's rule") {
  const auto spec = formats::load_model("minigpt:d=128,L=4,V=1000,s=64,heads=4");
  REQUIRE(spec);
  constexpr std::int64_t kPsi = 924'928;
  const std::int64_t bytes = std::int64_t{1} << 30;
  const plan::Job job = job_on(bytes, *spec);
  const double c =
      plan::activation_coefficient(*spec, 64, network::DType::kFloat32, network::Backend::kCpu);
  const auto closed = plan::closed_form_largest(*spec, job, {.all = kPsi, .trainable = kPsi});
  const auto rule = [&](bool with_A0) {
    return plan::closed_form_largest_batch(static_cast<double>(bytes), kPsi, c, 64, 128, 4,
                                           with_A0);
  };
  CHECK(closed.with_A0.has_value());
  CHECK(closed.with_A0 == rule(true));
  CHECK(closed.without_A0 == rule(false));
  CHECK_FALSE(
      plan::closed_form_largest(*spec, job_on(1000, *spec), {.all = kPsi, .trainable = kPsi})
          .with_A0);
}

TEST_CASE("verdicts: fits, tight, does not fit") {
  const auto spec = formats::load_model("minigpt:d=32,L=1,V=50,s=16,heads=4");
  REQUIRE(spec);
  plan::NeedSearch search(*spec);
  const std::int64_t bytes = search.of(job_on(1 << 30, *spec))->bytes;
  const auto verdict = [&](std::int64_t capacity) {
    return plan::make_fit(search, job_on(capacity, *spec)).verdict;
  };
  CHECK(verdict(2 * bytes) == plan::Verdict::kFits);
  CHECK(verdict(bytes + bytes / 100) == plan::Verdict::kTight);
  CHECK(verdict(bytes) == plan::Verdict::kTight);
  CHECK(verdict(bytes - 1) == plan::Verdict::kDoesNotFit);
}

TEST_CASE("the fewest ranks: one fewer does not fit") {
  const auto spec = formats::load_model("gpt2");
  REQUIRE(spec);
  plan::Job job = job_on(std::int64_t{1} << 30, *spec);
  job.sequence = 16;
  plan::NeedSearch search(*spec);
  const plan::FewestRanks fewest = plan::fewest_ranks(search, job);
  REQUIRE(fewest.ranks);
  CHECK(*fewest.ranks > 1);
  job.stage = fewest.stage;
  job.ranks = *fewest.ranks;
  CHECK(search.of(job)->fits);
  job.ranks = *fewest.ranks - 1;
  CHECK_FALSE(search.of(job)->fits);
  job.device = job_on(1000, *spec).device;
  CHECK_FALSE(plan::fewest_ranks(search, job).ranks);
}

TEST_CASE("a device is needed, and options cover every stage and policy") {
  const auto spec = formats::load_model("minigpt:d=32,L=1,V=50,s=16,heads=4");
  REQUIRE(spec);
  plan::Job job = job_on(1 << 30, *spec);
  job.ranks = 4;
  const auto report = plan::make_fit_report(*spec, job);
  REQUIRE(report);
  CHECK(report->options.size() == 12);
  REQUIRE(report->best);
  const plan::FitOption& best = report->options[*report->best];
  CHECK(best.checkpoint == network::Checkpoint::kNone);
  for (const plan::FitOption& option : report->options) {
    CHECK(option.need.flops >= best.need.flops);
  }
  job.device = nullptr;
  job.reserve.reset();
  const auto none = plan::make_fit_report(*spec, job);
  REQUIRE_FALSE(none);
  CHECK(none.error().where == "--device");
}

}  // namespace
}  // namespace plimsoll
