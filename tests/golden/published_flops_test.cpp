// FLOPs per token of published training tables, and what they follow from.
#include <cmath>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/plan/cost.hpp"
#include "plimsoll/plan/model_shape.hpp"

#include "tests/golden/published.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using plan::LayerShape;
using plan::ModelShape;

// Weights of products, embeddings, and `more` per layer that no product has (norms, biases).
std::int64_t count_parameters(const ModelShape& m, std::int64_t more) {
  std::int64_t sum = m.width + m.vocabulary * m.width * (m.tied_head ? 1 : 2);
  for (const plan::LayerGroup& group : m.layers) {
    const plan::MlpShape& mlp = group.shape.mlp;
    const std::int64_t matrix = mlp_matrices(mlp) * m.width;
    const std::int64_t experts = mlp.experts == 0 ? 1 : mlp.experts;
    sum += group.count * (attention_weights(group.shape.attention, m.width) +
                          matrix * mlp.feed_forward * experts + matrix * mlp.shared +
                          m.width * mlp.experts + more);
  }
  return sum;
}

void finish(ModelShape& m, std::int64_t more) {
  m.parameters = count_parameters(m, more);
  m.inactive = inactive_expert_parameters(m);
  m.lookup_parameters = m.vocabulary * m.width;
}

ModelShape qwen3_moe(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t f) {
  ModelShape m;
  m.width = width;
  m.vocabulary = 151936;
  LayerShape layer;
  layer.attention = {heads, 4, 128, 128};
  layer.mlp = {f, true, 128, 8};
  m.layers.push_back({layer, layers});
  finish(m, 2 * width + 2 * 128);
  return m;
}

ModelShape deepseek_v3(bool predicts_two) {
  ModelShape m;
  m.width = 7168;
  m.vocabulary = 129280;
  LayerShape layer;
  layer.attention = {128, 128, 192, 128, 0, 512, 64, 1536};
  layer.mlp = {18432, true};
  m.layers.push_back({layer, 3});
  layer.mlp = {2048, true, 256, 8, 2048};
  m.layers.push_back({layer, predicts_two ? 59 : 58});
  finish(m, 2 * m.width + 1536 + 512);
  if (predicts_two) {
    m.heads = 2;
    m.parameters += 2 * m.width * m.width;  // joins the embedding and the last hidden state
  }
  return m;
}

ModelShape gpt_oss_120b() {
  ModelShape m;
  m.width = 2880;
  m.vocabulary = 201088;
  LayerShape layer;
  layer.attention = {64, 8, 64, 64};
  layer.mlp = {2880, true, 128, 4};
  m.layers.push_back({layer, 18});
  layer.attention.window = 128;
  m.layers.push_back({layer, 18});
  // Biases of the four projections and of the experts, sinks, the router's bias, norms.
  const std::int64_t attention = 64 * (64 + 2 * 8) + 2880 + 64;
  const std::int64_t experts = 128 * (2 * 2880 + 2880);
  finish(m, attention + experts + 128 + 2 * 2880);
  m.inactive += 36 * (128 - 4) * (2 * 2880 + 2880);
  return m;
}

ModelShape model_shape(const std::string& what) {
  if (what.ends_with("Qwen3-30B-A3B")) return qwen3_moe(2048, 48, 32, 768);
  if (what.ends_with("Qwen3-235B-A22B")) return qwen3_moe(4096, 94, 64, 1536);
  if (what.ends_with("DeepSeek-V3 + 1 MTP")) return deepseek_v3(true);
  REQUIRE(what.ends_with("gpt-oss-120b"));
  return gpt_oss_120b();
}

TEST_CASE("the shapes have the published parameters") {
  CHECK(qwen3_moe(2048, 48, 32, 768).parameters == 30532122624);
  CHECK(qwen3_moe(2048, 48, 32, 768).active() == 3353032704);
  CHECK(qwen3_moe(4096, 94, 64, 1536).parameters == 235093634560);
  CHECK(qwen3_moe(4096, 94, 64, 1536).active() == 22190763520);
  CHECK(deepseek_v3(false).parameters == 671026404352);
  CHECK(gpt_oss_120b().parameters == 116829156672);
}

TEST_CASE("FLOPs per token of published tables within 0.3 %: 6 (active - looked up) + attention") {
  for (const json& row : test::published("model FLOPs")) {
    const std::string what = row.at("what");
    SUBCASE(what.c_str()) {
      const ModelShape model = model_shape(what);
      const double flops = training_flops_per_token(model, row.at("inputs").at("seq"), false);
      const double published = row.at("value").get<double>() * 1e9;
      CAPTURE(flops);
      CHECK(std::abs(flops / published - 1) < 0.003);
      // The convention is one of those that are shown.
      bool shown = false;
      for (const auto& convention : plan::token_conventions(model, row.at("inputs").at("seq"))) {
        shown = shown || convention.flops_per_token == flops;
      }
      CHECK(shown);
    }
  }
}

TEST_CASE("DeepSeek's own 250 GFLOP per token at 4096") {
  CHECK(training_flops_per_token(deepseek_v3(false), 4096, false) / 1e9 ==
        doctest::Approx(250).epsilon(0.003));
}

}  // namespace
}  // namespace plimsoll
