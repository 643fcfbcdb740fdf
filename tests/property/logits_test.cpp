// Chunks of the loss: what they leave of the logits.
#include <doctest/doctest.h>

#include "plimsoll/formats/inline_model.hpp"
#include "plimsoll/plan/plan.hpp"

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

plan::Plan plan_of(const network::NetworkSpec& spec, const plan::Job& job) {
  auto plan = plan::make_plan(spec, job);
  REQUIRE(plan.has_value());
  return *std::move(plan);
}

// 8 x 4,096 = 32,768 rows, 151,936 words, everything else small; logits in bf16, loss in fp32.
network::NetworkSpec wide_vocabulary() {
  return *formats::read_inline_model("minigpt:d=8,L=1,V=151936,s=4096,heads=1");
}

plan::Job wide_job() {
  plan::Job job;
  job.batch = 8;
  job.sequence = 4096;
  job.precision = plan::Precision::kMixed;
  return job;
}

constexpr std::int64_t kLogits = std::int64_t{32768} * 151936;

struct ExpectedCopy {
  const char* what;
  timeline::Phase phase;
  std::int64_t item;
};

void check_copies(const plan::LogitCopies& logits, const std::vector<ExpectedCopy>& expected,
                  std::int64_t values) {
  REQUIRE(logits.copies.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(logits.copies[i].what == expected[i].what);
    CHECK(logits.copies[i].phase == expected[i].phase);
    CHECK(logits.copies[i].item == expected[i].item);
    CHECK(logits.copies[i].bytes == expected[i].item * values);
  }
}

constexpr auto kForward = timeline::Phase::kForward;
constexpr auto kLoss = timeline::Phase::kLoss;
constexpr auto kBackward = timeline::Phase::kBackward;

}  // namespace

TEST_CASE("troubles 41: 32k x 152k words count half logits, fp32 logits, log-softmax, gradients") {
  const plan::Plan plan = plan_of(wide_vocabulary(), wide_job());
  REQUIRE(plan.logits.has_value());
  check_copies(*plan.logits,
               {{"logits", kForward, 2},
                {"logits in fp32", kLoss, 4},
                {"log-softmax", kLoss, 4},
                {"gradient of the log-softmax", kBackward, 4},
                {"gradient of the logits in fp32", kBackward, 4},
                {"gradient of the logits", kBackward, 2}},
               kLogits);
  // The loss alone holds 10 bytes per logit, 49.8 GB, where one fp32 copy is 18.5 GiB; backward 12.
  CHECK(plan.logits->most_at_once == 12 * kLogits);
  for (const timeline::PhaseFigures& f : plan.steady.phases) {
    if (f.key.phase == kLoss) CHECK(f.peak - f.start == 8 * kLogits + 2 * 4);
    if (f.key.phase == kLoss) CHECK(f.peak > 10 * kLogits);
  }
}

TEST_CASE("troubles 41: 16 chunks of the loss hold a sixteenth, and make them again in backward") {
  plan::Job job = wide_job();
  job.loss_chunks = 16;
  const plan::Plan plan = plan_of(wide_vocabulary(), job);
  const plan::Plan whole = plan_of(wide_vocabulary(), wide_job());
  REQUIRE(plan.logits.has_value());
  check_copies(*plan.logits,
               {{"logits", kLoss, 2},
                {"logits in fp32", kLoss, 4},
                {"log-softmax", kLoss, 4},
                {"logits again", kBackward, 2},
                {"logits in fp32 again", kBackward, 4},
                {"log-softmax again", kBackward, 4},
                {"gradient of the log-softmax", kBackward, 4},
                {"gradient of the logits in fp32", kBackward, 4},
                {"gradient of the logits", kBackward, 2}},
               kLogits / 16);
  CHECK(plan.logits->most_at_once == 12 * kLogits / 16);
  CHECK(plan.logits->peak_whole == whole.steady.peak.bytes);
  const std::int64_t saved = whole.steady.peak.bytes - plan.steady.peak.bytes;
  CHECK(saved > 10 * kLogits);
  // One more product of the head.
  CHECK(plan.flops.recompute.total_full() == 2 * kLogits * 8);
  CHECK(plan.flops.forward.total_full() == whole.flops.forward.total_full());
}

TEST_CASE("2,000 jobs: chunks of the loss never hold more copies of logits than the whole") {
  int chunked = 0;
  for_each_random_job(2000, [&](const RandomJob& random) {
    if (random.job.loss_chunks == 1) return;
    ++chunked;
    plan::Job whole = random.job;
    whole.loss_chunks = 1;
    const plan::Plan part = plan_of(random.spec, random.job);
    const plan::Plan all = plan_of(random.spec, whole);
    CHECK(part.logits->rows <= all.logits->rows);
    CHECK(part.logits->most_at_once <= all.logits->most_at_once);
    CHECK(part.flops.forward.total_full() == all.flops.forward.total_full());
    CHECK(part.posts.gradients == all.posts.gradients);
    CHECK(part.posts.moments == all.posts.moments);
  });
  CHECK(chunked > cases(2000) / 40);
}

}  // namespace plimsoll::test
