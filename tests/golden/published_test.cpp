// Published formula figures: model states by recipe and stage, caches of keys and values.
#include "tests/golden/published.hpp"

#include <cstdint>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/plan/inference.hpp"
#include "plimsoll/plan/model_states.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using plan::find_model_state_recipe;
using plan::model_states;

double gigabytes(const plan::ModelStates& states) { return states.total() / 1e9; }

TEST_CASE("every row of published.json is compared by a case of this suite") {
  const std::set<std::string> covered = {"model states", "P+G+O, fp32", "P+G+O, bf16", "KV cache",
                                         "model FLOPs"};
  const json rows = test::truth("published.json");
  CHECK(rows.size() == 57);
  for (const json& row : rows) {
    const std::string what = row.at("what");
    CAPTURE(what);
    bool known = false;
    for (const std::string& prefix : covered) known = known || what.starts_with(prefix);
    CHECK(known);
  }
}

TEST_CASE("model states of the ZeRO paper") {
  const auto* recipe = find_model_state_recipe("zero-paper");
  REQUIRE(recipe != nullptr);
  const auto rows = test::published("model states");
  CHECK(rows.size() == 39);
  for (const json& row : rows) {
    SUBCASE(row.at("inputs").dump().c_str()) {
      const json& in = row.at("inputs");
      const auto states = model_states(*recipe, in.at("params"), in.at("dp"), in.at("zero_stage"));
      CAPTURE(gigabytes(states));
      CHECK(test::equals_as_printed(gigabytes(states), row));
    }
  }
}

TEST_CASE("weights, gradients and states of the playbook") {
  for (const json& row : test::published("P+G+O")) {
    SUBCASE(row.dump().c_str()) {
      const double bytes = row.at("inputs").at("bytes_per_param");
      const bool wide =
          row.at("what").get<std::string>().find("with fp32 grad") != std::string::npos;
      const std::vector<std::string> recipes = wide
                                                   ? std::vector<std::string>{"fp32-gradients"}
                                                   : std::vector<std::string>{"fp32", "zero-paper"};
      for (const std::string& name : recipes) {
        CAPTURE(name);
        const auto states =
            model_states(*find_model_state_recipe(name), row.at("inputs").at("params"), 1, 0);
        CHECK(states.total() == bytes * row.at("inputs").at("params").get<double>());
        CHECK(test::equals_as_printed(gigabytes(states), row));
      }
    }
  }
}

// One kind of layer, from the inputs of a row.
plan::ModelShape cache_model(const json& in) {
  plan::LayerShape layer;
  layer.attention.heads = 1;
  if (in.contains("kv_lora_rank")) {
    layer.attention.kv_rank = in.at("kv_lora_rank");
    layer.attention.rope_dim = in.at("qk_rope_head_dim");
  } else if (in.contains("kv_heads_x_head_dim")) {
    layer.attention.kv_heads = 1;
    layer.attention.key_dim = layer.attention.value_dim = in.at("kv_heads_x_head_dim");
  } else {
    layer.attention.kv_heads = in.at("kv_heads");
    layer.attention.key_dim = layer.attention.value_dim = in.at("head_dim");
  }
  plan::ModelShape model;
  model.layers.push_back({layer, in.at("layers")});
  return model;
}

TEST_CASE("cache of keys and values: bytes per token exact, totals as printed") {
  for (const json& row : test::published("KV cache")) {
    SUBCASE(row.at("what").get<std::string>().c_str()) {
      json in = row.at("inputs");
      if (in.contains("bytes_per_token")) {  // Llama-3.1-8B again, with a batch of 128 x 1024
        in = {{"layers", 32}, {"kv_heads", 8}, {"head_dim", 128},
              {"bytes", 2},   {"batch", 128},  {"tokens", 1024}};
      }
      plan::InferenceJob job;
      job.batch = in.value("batch", 1);
      job.context = in.value("tokens", 1);
      job.kv_item = in.at("bytes");
      const plan::KvCache cache = plan::kv_cache(cache_model(in), job);
      const std::string unit = row.at("unit");
      if (unit == "bytes/token") {
        CHECK(cache.bytes_per_token == row.at("value").get<std::int64_t>());
      } else if (unit == "GiB") {
        CHECK(cache.total == row.at("value").get<std::int64_t>() << 30);
      } else {
        CHECK(test::equals_as_printed(static_cast<double>(cache.total) / 1e9, row));
      }
    }
  }
}

TEST_CASE("a window bounds what a layer keeps, and a cache in fp8 is half of one in bf16") {
  plan::ModelShape model = cache_model({{"layers", 4}, {"kv_heads", 2}, {"head_dim", 8}});
  model.layers.push_back(model.layers.front());
  model.layers.back().shape.attention.window = 100;
  plan::InferenceJob job;
  job.context = 1000;
  CHECK(plan::kv_cache(model, job).bytes_per_row == 4 * (2 * 2 * 8 * 2) * (1000 + 100));
  job.context = 60;
  CHECK(plan::kv_cache(model, job).bytes_per_row == 4 * (2 * 2 * 8 * 2) * (60 + 60));
  const std::int64_t wide = plan::kv_cache(model, job).total;
  job.kv_item = 1;
  CHECK(plan::kv_cache(model, job).total * 2 == wide);
}

TEST_CASE("formula stages of the issue: 7B on 8 ranks, 7.5B on 64") {
  const auto total = [](const char* recipe, double psi, std::int64_t ranks, int stage) {
    return model_states(*find_model_state_recipe(recipe), psi, ranks, stage).total() / 1e9;
  };
  const double fp32[] = {112, 63, 38.5, 14};
  for (int stage = 0; stage <= 3; ++stage) {
    CHECK(total("fp32", 7e9, 8, stage) == doctest::Approx(fp32[stage]));
  }
  CHECK(total("megatron", 1e9, 1, 0) == doctest::Approx(18));
  CHECK(total("megatron", 1e9, 4, 1) == doctest::Approx(6 + 12 / 4.0));
  // plimsoll's own: 18, 16 on one rank; 4 + 16/R, 2 + 16/R, 16/R.
  CHECK(total("mixed", 1e9, 8, 0) == doctest::Approx(18));
  CHECK(total("mixed", 1e9, 1, 0) == doctest::Approx(16));
  CHECK(total("mixed", 1e9, 8, 1) == doctest::Approx(4 + 16 / 8.0));
  CHECK(total("mixed", 1e9, 8, 2) == doctest::Approx(2 + 16 / 8.0));
  CHECK(total("mixed", 1e9, 8, 3) == doctest::Approx(16 / 8.0));
}

TEST_CASE("no recipe holds more in a higher stage") {
  for (const plan::ModelStateRecipe& recipe : plan::model_state_recipes()) {
    CAPTURE(recipe.name);
    for (const std::int64_t ranks : {2, 3, 8, 1000}) {
      for (int stage = 0; stage < 3; ++stage) {
        CHECK(model_states(recipe, 1e9, ranks, stage + 1).total() <=
              model_states(recipe, 1e9, ranks, stage).total());
      }
    }
  }
}

}  // namespace
}  // namespace plimsoll
