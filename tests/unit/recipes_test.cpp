// Posts of recipes and optimizers that are calculated alone, against their papers' and sources' figures.
#include <doctest/doctest.h>

#include "plimsoll/formats/inline_model.hpp"
#include "plimsoll/plan/plan.hpp"
#include "plimsoll/plan/recipe_checks.hpp"

namespace plimsoll {
namespace {

using plan::Precision;

const network::NetworkSpec& gpt() {
  static const network::NetworkSpec spec =
      *formats::read_inline_model("minigpt:d=128,L=4,V=1000,s=64,heads=4");
  return spec;
}

plan::Job job_with(Precision precision) {
  plan::Job job;
  job.sequence = 64;
  job.precision = precision;
  return job;
}

plan::Plan recipe_plan(const plan::Job& job) {
  auto plan = plan::make_plan(gpt(), job);
  REQUIRE(plan.has_value());
  return *std::move(plan);
}

constexpr std::int64_t kPsi = 924928;

// Bytes per parameter.
double sum_of(const plan::Posts& posts) {
  return static_cast<double>(posts.parameters + posts.gradients + posts.moments) /
         static_cast<double>(kPsi);
}

plan::Posts posts_of(Precision precision, std::int32_t ranks, shard::Stage stage) {
  plan::Job job = job_with(precision);
  job.ranks = ranks;
  job.stage = stage;
  return recipe_plan(job).posts;
}

}  // namespace

TEST_CASE("zero-paper: 2 + 2 + 12 bytes, of which stages divide 12, 14 and 16") {
  using shard::Stage;
  CHECK(recipe_plan(job_with(Precision::kZeroPaper)).posts.parameters == 2 * kPsi);
  CHECK(recipe_plan(job_with(Precision::kZeroPaper)).posts.gradients == 2 * kPsi);
  CHECK(recipe_plan(job_with(Precision::kZeroPaper)).posts.moments == 12 * kPsi);
  CHECK(sum_of(posts_of(Precision::kZeroPaper, 4, Stage::kOptimizer)) == 4 + 12.0 / 4);
  CHECK(sum_of(posts_of(Precision::kZeroPaper, 4, Stage::kGradients)) == 2 + 14.0 / 4);
  CHECK(sum_of(posts_of(Precision::kZeroPaper, 4, Stage::kParameters)) == 16.0 / 4);
}

TEST_CASE("megatron: 18 bytes, with a distributed optimizer 6 + 12 / R") {
  CHECK(sum_of(recipe_plan(job_with(Precision::kMegatron)).posts) == 18);
  CHECK(sum_of(posts_of(Precision::kMegatron, 8, shard::Stage::kOptimizer)) == 6 + 12.0 / 8);
}

TEST_CASE("formula recipes say so, and are not run") {
  const plan::Plan plan = recipe_plan(job_with(Precision::kMegatron));
  CHECK(plan.posts.by_formula);
  CHECK(plan.closed_form->parameters == "2 Psi");
  CHECK(plan.closed_form->gradients == "4 Psi");
  CHECK(plan.closed_form->optimizer == "12 Psi");
  CHECK_FALSE(plan::validate_runs(plan.job, "a test").has_value());
  CHECK(plan::recipe_assumptions(Precision::kMegatron).size() == 1);
  // The rest is mixed's.
  CHECK(plan.steady.peak.bytes == recipe_plan(job_with(Precision::kMixed)).steady.peak.bytes);
}

TEST_CASE("fp16: 2 + 2 + 4 bytes and the loss scaler's 8") {
  const plan::Plan plan = recipe_plan(job_with(Precision::kFp16));
  CHECK(plan.posts.parameters == 2 * kPsi);
  CHECK(plan.posts.gradients == 2 * kPsi);
  CHECK(plan.posts.moments == 4 * kPsi);
  CHECK(plan.posts.loss_scaler == 8);
  CHECK(plan.posts.optimizer() == 4 * kPsi + 8);
}

TEST_CASE(
    "overrides: bf16 with fp32 masters and states is mixed; fp32 gradients are 2 bytes more") {
  plan::Job job = job_with(Precision::kBf16);
  job.master = plan::MasterChoice{network::DType::kFloat32};
  job.state_dtype = job.loss_dtype = network::DType::kFloat32;
  const plan::Plan mixed = recipe_plan(job_with(Precision::kMixed));
  CHECK(recipe_plan(job).steady.peak.bytes == mixed.steady.peak.bytes);
  job.grad_dtype = network::DType::kFloat32;
  CHECK(recipe_plan(job).posts.gradients == 2 * mixed.posts.gradients);
}

TEST_CASE("autocast: 4 + 4 + 8 bytes; what is saved shrinks, and bf16 weights are part of it") {
  const plan::Plan autocast = recipe_plan(job_with(Precision::kAutocast));
  const plan::Plan fp32 = recipe_plan(job_with(Precision::kFp32));
  CHECK(autocast.posts.parameters == fp32.posts.parameters);
  CHECK(autocast.posts.gradients == fp32.posts.gradients);
  CHECK(autocast.posts.optimizer() == fp32.posts.optimizer());
  // Both grow with the batch; beyond the copies of the weights autocast grows more slowly.
  plan::Job wide = job_with(Precision::kAutocast);
  wide.batch = 9;
  const std::int64_t grown = recipe_plan(wide).posts.activations - autocast.posts.activations;
  wide.precision = Precision::kFp32;
  CHECK(grown < recipe_plan(wide).posts.activations - fp32.posts.activations);
  constexpr std::int64_t kMatrices = 4 * 12 * 128 * 128 + 1000 * 128;  // read by products
  CHECK(autocast.posts.activations - grown / 8 >= 2 * kMatrices);
}

TEST_CASE("adamw-8bit: a byte per moment, a scale per 256 elements, small tensors in fp32") {
  plan::Job job = job_with(Precision::kBf16);
  job.optimizer = plan::Optimizer::kAdamW8bit;
  job.optimizer_impl = plan::OptimizerImpl::kBitsAndBytes;
  const network::Network net = network::build_network(gpt(), job.build_options());
  std::int64_t expected = 2 * 1024;  // two tables of 256 fp32 values
  std::int64_t small = 0;
  for (const network::Parameter& p : net.parameters) {
    const std::int64_t n = network::element_count(p.shape);
    if (n < 4096) ++small;
    expected += n < 4096 ? 8 * n : 2 * n + 2 * 4 * ((n + 255) / 256);
  }
  CHECK(small > 0);  // norms
  CHECK(recipe_plan(job).posts.moments == expected);
}

TEST_CASE("adafactor: rows and columns of matrices, all of vectors, 4 bytes of step each") {
  plan::Job job = job_with(Precision::kFp32);
  job.optimizer = plan::Optimizer::kAdafactor;
  job.optimizer_impl = plan::OptimizerImpl::kTorchPython;
  const network::Network net = network::build_network(gpt(), job.build_options());
  std::int64_t expected = 0;
  for (const network::Parameter& p : net.parameters) {
    expected += 4 * (p.shape.size() == 2 ? p.shape[0] + p.shape[1] : p.shape[0]);
  }
  const plan::Plan plan = recipe_plan(job);
  CHECK(plan.posts.moments == expected);
  CHECK(plan.posts.step_counters == 4 * plan.parameters.tensors);
}

}  // namespace plimsoll
