// Costs by row are those of the walk, and formulas of textbooks follow from them.
#include "plimsoll/plan/cost.hpp"

#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "plimsoll/plan/plan.hpp"
#include "plimsoll/plan/products.hpp"

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

using plan::CostRow;

plan::ConventionFlops flops_of(const std::vector<CostRow>& rows, const std::string& pass,
                               bool attention) {
  plan::ConventionFlops total;
  for (const CostRow& row : rows) {
    const bool square = row.operation == "scores and values";
    if (row.pass.starts_with(pass) && square == attention) total += row.flops;
  }
  return total;
}

std::int64_t training(const std::vector<CostRow>& rows, const std::string& operation) {
  std::int64_t total = 0;
  for (const CostRow& row : rows) {
    if (row.operation == operation) total += row.flops.full;
  }
  return total;
}

// B, T, D, N, K, H, F, V, L of a gated model.
plan::ModelShape gated(std::int64_t d, std::int64_t n, std::int64_t k, std::int64_t h,
                       std::int64_t f, std::int64_t v, std::int64_t l) {
  plan::ModelShape model;
  model.width = d;
  model.vocabulary = v;
  plan::LayerShape layer;
  layer.attention = {n, k, h, h};
  layer.mlp = {f, true};
  model.layers.push_back({layer, l});
  return model;
}

}  // namespace

TEST_CASE("2,000 jobs: products by row sum to what the walk counts, in every convention") {
  for_each_random_job(2000, [](const RandomJob& random) {
    // Rows are those of the whole model.
    if (random.spec.family == network::Family::kCnn || random.job.adapts()) return;
    const auto plan = plan::make_plan(random.spec, random.job);
    REQUIRE(plan.has_value());
    const auto rows =
        plan::training_rows(plan::shape_of(random.spec), plan::cost_sizes(random.job));
    const auto linear = flops_of(rows, "forward", false);
    const auto square = flops_of(rows, "forward", true);
    CHECK(linear.full == plan->flops.forward.matmul);
    CHECK(square.full == plan->flops.forward.attention_full);
    CHECK(square.causal_half == plan->flops.forward.attention_full / 2);
    CHECK(square.causal_exact == plan->flops.forward.attention_exact);
    CHECK(linear.full + square.causal_exact == plan->flops.forward.total_exact());
    CHECK(flops_of(rows, "backward", false).full == plan->flops.backward.matmul);
    // Fused kernels compute the scores once more in backward: five products for four.
    const bool grouped = random.spec.heads != random.spec.kv_heads;
    const bool math = random.job.kernel(grouped) == network::AttentionKernel::kMath;
    const std::int64_t backward = flops_of(rows, "backward", true).full;
    CHECK(plan->flops.backward.attention_full == (math ? backward : backward / 4 * 5));
  });
}

TEST_CASE(
    "training FLOPs of the textbook: 18 B T D F, 12 B T D H (N + K), 12 B T S N H, 6 B T D V") {
  const std::int64_t B = 3, T = 40, D = 64, N = 8, K = 2, H = 16, F = 176, V = 1000, L = 5;
  plan::CostSizes sizes;
  sizes.batch = B;
  sizes.tokens = T;
  const auto rows = plan::training_rows(gated(D, N, K, H, F, V, L), sizes);
  CHECK(training(rows, "MLP") == L * 18 * B * T * D * F);
  CHECK(training(rows, "projections") == L * 12 * B * T * D * H * (N + K));
  CHECK(training(rows, "scores and values") == L * 12 * B * T * T * N * H);
  CHECK(training(rows, "unembedding") == 6 * B * T * D * V);
}

TEST_CASE("attention dominates from T = 8 D on when F = 4 D, D = N H and N = K") {
  const plan::ModelShape model = gated(8192, 64, 64, 128, 4 * 8192, 50000, 3);
  CHECK(plan::attention_crossover(model) == doctest::Approx(8 * 8192));
}

TEST_CASE("two matrices cost 12 B T D F, and a window bounds the pairs") {
  plan::ModelShape model = gated(64, 4, 4, 16, 256, 100, 1);
  model.layers[0].shape.mlp.gated = false;
  plan::CostSizes sizes;
  sizes.tokens = 10;
  CHECK(training(plan::training_rows(model, sizes), "MLP") == 12 * 10 * 64 * 256);
  model.layers[0].shape.attention.window = 4;
  const auto square = flops_of(plan::training_rows(model, sizes), "forward", true);
  // 1 + 2 + 3 + 4 and then six times 4.
  CHECK(square.causal_exact == 34 * 4 * 4 * 16);
  CHECK(square.full == 100 * 4 * 4 * 16);
}

TEST_CASE("experts: E/k of the parameters in k of the FLOPs, two exchanges a pass") {
  plan::ModelShape model = gated(64, 4, 4, 16, 32, 100, 6);
  model.layers[0].shape.mlp = {32, true, 8, 2};
  plan::CostSizes sizes;
  sizes.batch = 2;
  sizes.tokens = 10;
  CHECK(training(plan::training_rows(model, sizes), "experts") == 6 * 18 * 20 * 2 * 64 * 32);
  const auto facts = plan::expert_facts(model, sizes);
  REQUIRE(facts.has_value());
  CHECK(facts->sparsity == 4);
  CHECK(facts->all_to_all_bytes == 2 * 20 * 2 * 64);
  CHECK(facts->exchanges == 4 * 6);
  CHECK(plan::inactive_expert_parameters(model) == 6 * 6 * 3 * 64 * 32);
  CHECK_FALSE(plan::expert_facts(gated(64, 4, 4, 16, 32, 100, 6), sizes).has_value());
}

TEST_CASE("single products: FLOPs and elements by formula") {
  const auto forward = [](plan::ProductKind kind, const std::vector<std::int64_t>& sizes) {
    return plan::product_passes(kind, sizes).front();
  };
  const auto dot = forward(plan::ProductKind::kDot, {7});
  CHECK(dot.flops == 14);
  CHECK(dot.elements_read == 14);
  CHECK(dot.elements_written == 1);
  const auto matvec = forward(plan::ProductKind::kMatvec, {3, 7});
  CHECK(matvec.flops == 2 * 3 * 7);
  CHECK(matvec.elements_read == 3 * 7 + 7);
  const auto matmul = forward(plan::ProductKind::kMatmul, {3, 7, 5});
  CHECK(matmul.flops == 2 * 3 * 7 * 5);
  CHECK(matmul.elements_read == 3 * 7 + 7 * 5);
  CHECK(matmul.elements_written == 3 * 5);
  const auto batched = forward(plan::ProductKind::kBatched, {2, 3, 5, 7});  // G M N K
  CHECK(batched.flops == 2 * 2 * 5 * 3 * 7);
  CHECK(batched.elements_read == 2 * 3 * 7 + 2 * 5 * 7);
  CHECK(batched.elements_written == 2 * 3 * 5);
}

TEST_CASE("the intensity of a square product grows with its size, that of a dot product does not") {
  const auto intensity = [](plan::ProductKind kind, const std::vector<std::int64_t>& sizes,
                            std::int64_t scale) {
    return plan::product_passes(kind, sizes, scale).front().intensity(2);
  };
  const std::vector<std::int64_t> square = {512, 512, 512};
  CHECK(intensity(plan::ProductKind::kMatmul, square, 1) == doctest::Approx(512 / 3.0));
  CHECK(intensity(plan::ProductKind::kMatmul, square, 4) == doctest::Approx(4 * 512 / 3.0));
  CHECK(intensity(plan::ProductKind::kDot, {1000}, 16) < 0.5);
  CHECK(intensity(plan::ProductKind::kMatvec, {512, 512}, 16) < 1);
}

TEST_CASE("every pass of a product has the FLOPs of forward, and moves the same elements") {
  for (const plan::ProductKind kind : {plan::ProductKind::kDot, plan::ProductKind::kMatvec,
                                       plan::ProductKind::kMatmul, plan::ProductKind::kBatched}) {
    const std::vector<std::int64_t> sizes = {6, 5, 4, 3};
    const auto passes = plan::product_passes(kind, sizes);
    REQUIRE(passes.size() == 3);
    for (const plan::ProductPass& pass : passes) {
      CHECK(pass.flops == passes[0].flops);
      CHECK(pass.bytes(4) == passes[0].bytes(4));
    }
  }
}

TEST_CASE("roofline: below the ridge bandwidth is the bound, above it arithmetic") {
  hardware::Device device = hardware::device_of_size(1000, "1000B");
  CHECK_FALSE(plan::roofline(device, hardware::Arithmetic::kBf16, 1, 1).has_value());
  device.bandwidth.value = 10;
  auto& peak = device.peaks.at(static_cast<std::size_t>(hardware::Arithmetic::kBf16));
  peak.tensor.value = 1000;
  CHECK(*plan::ridge(device, hardware::Arithmetic::kBf16) == 100);
  const auto memory = plan::roofline(device, hardware::Arithmetic::kBf16, 50, 1);
  CHECK(memory->seconds == doctest::Approx(0.1));
  CHECK_FALSE(memory->by_compute);
  const auto compute = plan::roofline(device, hardware::Arithmetic::kBf16, 500, 1);
  CHECK(compute->seconds == doctest::Approx(0.5));
  CHECK(compute->by_compute);
}

}  // namespace plimsoll::test
