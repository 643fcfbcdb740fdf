// A plan says what the same job has in transformers' operations: what a plan of semantics hf says.
#include <doctest/doctest.h>

#include "plimsoll/formats/config.hpp"
#include "plimsoll/plan/plan.hpp"

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

constexpr int kJobs = 500;

// Falcon's newer kind: groups of heads share a key, in an attention of its own that is not known.
TEST_CASE("where transformers' operations are not known, a plan says so and goes on") {
  const auto spec = formats::read_config(
      R"({"model_type": "falcon", "hidden_size": 64, "num_attention_heads": 4, "num_kv_heads": 2,
          "num_hidden_layers": 2, "vocab_size": 99, "new_decoder_architecture": true})",
      "config.json");
  REQUIRE(spec);
  plan::Job job;
  job.sequence = 16;
  const auto plan = plan::make_plan(*spec, job);
  REQUIRE(plan);
  CHECK_FALSE(plan->hugging_face.figures);
  CHECK(plan->hugging_face.reason ==
        "semantics=hf is not known for falcon with 2 key/value heads for 4 heads, expected "
        "plimsoll");
  job.semantics = network::Semantics::kHuggingFace;
  CHECK_FALSE(plan::make_plan(*spec, job));
}

TEST_CASE("the figures of semantics hf beside a plan are those of a plan of semantics hf") {
  int compared = 0;
  int unknown = 0;
  for_each_random_job(kJobs, [&](const RandomJob& random) {
    const auto plan = plan::make_plan(random.spec, random.job);
    REQUIRE(plan);
    const plan::HuggingFace& beside = plan->hugging_face;
    CHECK(beside.figures.has_value() == beside.reason.empty());
    plan::Job job = random.job;
    const bool itself = job.semantics == network::Semantics::kHuggingFace;
    job.semantics = network::Semantics::kHuggingFace;
    const auto other = plan::make_plan(random.spec, job);
    if (itself || !other) {
      CHECK_FALSE(beside.figures);
      if (!itself) CHECK(beside.reason == other.error().what);
      ++unknown;
      return;
    }
    REQUIRE(beside.figures);
    network::FlopCount flops = other->flops.forward;
    flops += other->flops.backward;
    flops += other->flops.recompute;
    CHECK(beside.figures->peak == other->steady.peak.bytes);
    CHECK(beside.figures->activations == other->posts.activations);
    CHECK(beside.figures->flops == flops.total_full());
    ++compared;
  });
  CHECK(compared > cases(kJobs) / 10);
  CHECK(unknown > cases(kJobs) / 10);
}

}  // namespace
}  // namespace plimsoll::test
