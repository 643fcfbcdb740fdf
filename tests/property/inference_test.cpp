// Plans of inference against formulas: the cache, the products, and posts that sum to the peak.
#include "plimsoll/plan/inference.hpp"

#include <cstdint>

#include <doctest/doctest.h>

#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/plan/plan.hpp"

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

plan::InferenceJob same_job(const plan::Job& job) {
  plan::InferenceJob same;
  same.batch = job.batch;
  same.prompt = same.context = job.sequence;
  same.weight_item = network::size_of(job.recipe().compute);
  same.kv_item = network::size_of(job.cache_dtype());
  return same;
}

// Elements of norms and biases, which the formulas take for weights of products.
std::int64_t vector_elements(const network::Network& network) {
  std::int64_t sum = 0;
  for (const network::Parameter& p : network.parameters) {
    if (p.shape.size() == 1) sum += p.shape[0];
  }
  return sum;
}

// The products of a step by formula: `context` there counts the tokens before the new one.
std::int64_t flops_by_formula(const network::NetworkSpec& spec, const plan::Job& job) {
  const plan::ModelShape shape = plan::shape_of(spec);
  plan::InferenceJob same = same_job(job);
  const bool decodes = job.mode == plan::Mode::kDecode;
  if (decodes) same.context -= 1;
  const std::int64_t tokens = job.batch * (decodes ? 1 : job.sequence);
  const std::int64_t vectors = vector_elements(network::build_network(spec, job.build_options()));
  return (decodes ? plan::decode(shape, same) : plan::prefill(shape, same)).flops -
         2 * tokens * vectors;
}

plan::Plan planned(const network::NetworkSpec& spec, const plan::Job& job) {
  const auto plan = plan::make_plan(spec, job);
  REQUIRE_MESSAGE(plan.has_value(), (plan ? "" : format_error(plan.error())));
  return *plan;
}

plan::Job inference_of(const RandomJob& random, plan::Mode mode) {
  plan::Job job;
  job.mode = mode;
  job.batch = random.job.batch;
  job.sequence = random.job.sequence;
  job.precision =
      plan::is_formula(random.job.precision) ? plan::Precision::kMixed : random.job.precision;
  return job;
}

}  // namespace

TEST_CASE("300 jobs: the cache and the products are the formulas', and posts sum to the peak") {
  for_each_random_job(300, [](const RandomJob& random) {
    const bool decoder =
        random.spec.family != network::Family::kCnn && random.spec.architecture.causal;
    if (!decoder) return;
    const plan::ModelShape shape = plan::shape_of(random.spec);
    for (plan::Mode mode : {plan::Mode::kPrefill, plan::Mode::kDecode}) {
      CAPTURE(network::name(mode));
      const plan::Job job = inference_of(random, mode);
      const plan::Plan plan = planned(random.spec, job);
      const plan::InferencePosts& posts = *plan.inference;
      CHECK(posts.kv_cache == plan::kv_cache(shape, same_job(job)).total);
      CHECK(plan.posts.parameters + posts.kv_cache + posts.inputs + posts.transients ==
            plan.steady.peak.bytes);
      CHECK(posts.logits ==
            job.batch * random.spec.vocabulary * network::size_of(job.recipe().operand));
      CHECK(plan.flops.forward.total_exact() == flops_by_formula(random.spec, job));
      CHECK(plan.posts.gradients + plan.posts.optimizer() + plan.posts.activations == 0);
      CHECK(plan.flops.backward.total_full() == 0);
      CHECK(plan.first.peak.bytes == plan.steady.peak.bytes);
    }
  });
}

TEST_CASE("a cache of S = 8192, L = 64, K H = 8192 in int8 has 8 GiB") {
  network::NetworkSpec spec;
  spec.family = network::Family::kLlama;
  spec.title = "wide";
  spec.width = 8192;
  spec.layers = 64;
  spec.heads = spec.kv_heads = 64;
  spec.head_dim = 128;
  spec.feed_forward = 28672;
  spec.vocabulary = 32000;
  spec.positions = 8192;
  plan::Job job;
  job.mode = plan::Mode::kDecode;
  job.sequence = 8192;
  job.precision = plan::Precision::kBf16;
  job.kv_dtype = network::DType::kInt8;
  CHECK(planned(spec, job).inference->kv_cache == std::int64_t{8} << 30);
}

TEST_CASE("what only training has is refused, by name") {
  const network::NetworkSpec spec = *formats::load_model("gpt2");
  const auto refused = [&](auto change) {
    plan::Job job;
    job.mode = plan::Mode::kPrefill;
    job.sequence = 16;
    REQUIRE(plan::validate(job, spec).has_value());
    change(job);
    const auto valid = plan::validate(job, spec);
    return valid ? std::string() : valid.error().where;
  };
  CHECK(refused([](plan::Job& j) { j.accumulate = 2; }) == "--accumulate");
  CHECK(refused([](plan::Job& j) { j.optimizer = plan::Optimizer::kSgd; }) == "--optimizer");
  CHECK(refused([](plan::Job& j) { j.checkpoint = plan::Checkpoint::kBlock; }) == "--checkpoint");
  CHECK(refused([](plan::Job& j) { j.dropout = 0.1; }) == "--dropout");
  CHECK(refused([](plan::Job& j) { j.loss_chunks = 2; }) == "--loss-chunks");
  CHECK(refused([](plan::Job& j) { j.lora = network::Lora{}; }) == "--lora");
  CHECK(refused([](plan::Job& j) { j.hold_logits = true; }) == "--hold-logits");
  CHECK(refused([](plan::Job& j) { j.shared_targets = true; }) == "--targets");
  CHECK(refused([](plan::Job& j) { j.ranks = 2; }) == "--ranks");
  CHECK(refused([](plan::Job& j) { j.stage = shard::Stage::kParameters; }) == "--zero");
  CHECK(refused([](plan::Job& j) { j.snapshot = true; }) == "--snapshot");
  CHECK(refused([](plan::Job& j) { j.semantics = plan::Semantics::kHuggingFace; }) ==
        "--semantics");
  CHECK(refused([](plan::Job& j) { j.precision = plan::Precision::kMegatron; }) == "--precision");
  network::NetworkSpec encoder = spec;
  encoder.architecture.causal = false;
  plan::Job decode;
  decode.mode = plan::Mode::kDecode;
  decode.sequence = 16;
  REQUIRE_FALSE(plan::validate(decode, encoder).has_value());
  CHECK(plan::validate(decode, encoder).error().where == "--mode");
  CHECK(refused([](plan::Job& j) { j.sequence = 1025; }) == "--seq");
  CHECK(refused([](plan::Job& j) {
          j.mode = plan::Mode::kTrain;
          j.kv_dtype = network::DType::kInt8;
        }) == "--kv-dtype");
}

}  // namespace plimsoll::test
