// Shapes read from configs that have no timeline: mixtures of experts, latent attention, windows.
#include "plimsoll/formats/config_shape.hpp"

#include <cmath>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/plan/cost.hpp"
#include "plimsoll/plan/inference.hpp"

#include "tests/golden/published.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;

plan::ModelShape shape_of(const std::string& file) {
  const json truth = test::truth("hf/models/" + file + ".json");
  const auto config = formats::class_config(truth.at("config"), file);
  REQUIRE(config.has_value());
  const auto inventory = formats::read_inventory(*config);
  REQUIRE(inventory.has_value());
  auto shape = formats::shape_from_config(*config, *inventory);
  REQUIRE_MESSAGE(shape.has_value(), (shape ? "" : format_error(shape.error())));
  CHECK(shape->parameters == truth.at("params_unique").get<std::int64_t>());
  return *shape;
}

std::int64_t cached_per_token(const plan::ModelShape& shape) {
  plan::InferenceJob job;
  return plan::kv_cache(shape, job).bytes_per_token;
}

double flops_per_token(const std::string& file) {
  return plan::training_flops_per_token(shape_of(file), 4096, false) / 1e9;
}

TEST_CASE("active parameters of published mixtures") {
  const json models = test::truth("models.json");
  const auto active = [&](const std::string& name) -> std::int64_t {
    for (const json& model : models) {
      if (model.at("name") == name) return model.at("params_active");
    }
    FAIL("no such model");
    return 0;
  };
  CHECK(shape_of("qwen3-235b-a22b").active() == active("Qwen3-235B-A22B"));
  CHECK(shape_of("mixtral-8x22b").active() == active("Mixtral-8x22B"));
  CHECK(shape_of("qwen1.5-moe-a2.7b").active() == active("Qwen1.5-MoE-A2.7B"));
  CHECK(shape_of("deepseek-v2-lite").active() == active("DeepSeek-V2-Lite"));
}

TEST_CASE("FLOPs per token of published tables from the configs alone") {
  CHECK(std::abs(flops_per_token("qwen3-235b-a22b") / 148.14 - 1) < 0.003);
  CHECK(std::abs(flops_per_token("gpt-oss-120b") / 32.613 - 1) < 0.003);
  CHECK(std::abs(flops_per_token("deepseek-v3") / 250 - 1) < 0.003);
}

TEST_CASE("caches: latent attention, windows, grouped heads") {
  CHECK(cached_per_token(shape_of("deepseek-v3")) == 70272);
  CHECK(cached_per_token(shape_of("llama-3.1-8b")) == 131072);
  const plan::ModelShape windows = shape_of("gpt-oss-120b");
  plan::InferenceJob job;
  job.context = 4096;
  // 18 layers keep 128 tokens, 18 all of them: 8 heads of 64, keys and values, 2 bytes.
  CHECK(plan::kv_cache(windows, job).bytes_per_row == 18 * 2 * 8 * 64 * 2 * (128 + 4096));
}

TEST_CASE("experts: E and k, shared experts, dense layers first") {
  const plan::ModelShape deepseek = shape_of("deepseek-v3");
  REQUIRE(deepseek.layers.size() == 2);
  CHECK(deepseek.layers[0].count == 3);
  CHECK(deepseek.layers[0].shape.mlp.feed_forward == 18432);
  const plan::MlpShape& experts = deepseek.layers[1].shape.mlp;
  CHECK(experts.experts == 256);
  CHECK(experts.per_token == 8);
  CHECK(experts.feed_forward == 2048);
  CHECK(experts.shared == 2048);
  CHECK(shape_of("qwen1.5-moe-a2.7b").layers[0].shape.mlp.shared_gate);
}

TEST_CASE("layers that are no transformer's are refused") {
  const json truth = test::truth("hf/models/falcon-mamba-7b.json");
  const auto config = formats::class_config(truth.at("config"), "mamba");
  REQUIRE(config.has_value());
  const auto inventory = formats::read_inventory(*config);
  REQUIRE(inventory.has_value());
  CHECK_FALSE(formats::shape_from_config(*config, *inventory).has_value());
}

}  // namespace
}  // namespace plimsoll
