// docs/tour.md, the ZeRO article and the FLOPs chapter: every figure they print beside ours.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/plan/cost.hpp"
#include "plimsoll/plan/inference.hpp"
#include "plimsoll/plan/layer_tensors.hpp"
#include "plimsoll/plan/model_states.hpp"
#include "plimsoll/plan/products.hpp"
#include "plimsoll/plan/traffic.hpp"

#include "tests/checked_table.hpp"
#include "tests/golden/published.hpp"

namespace plimsoll::test {
namespace {

using nlohmann::json;

double recipe_gigabytes(const char* recipe, double parameters, std::int64_t ranks, int stage) {
  const plan::ModelStateRecipe* known = plan::find_model_state_recipe(recipe);
  REQUIRE(known != nullptr);
  return plan::model_states(*known, parameters, ranks, stage).total() / 1e9;
}

// --- ZeRO

std::string stages_table() {
  struct Row {
    const char* what;
    const char* recipe;
    double parameters;
    int ranks;
    std::vector<std::string> printed;
  };
  const std::vector<Row> rows = {
      {"7 B parameters on 8 ranks, fp32", "fp32", 7e9, 8, {"112", "63", "38.5", "14"}},
      {"7.5 B on 64 ranks, 2 + 2 + 12 bytes",
       "zero-paper",
       7.5e9,
       64,
       {"120", "31.4", "16.6", "1.9"}}};
  Comparison table("article");
  for (const Row& row : rows) {
    for (int stage = 0; stage <= 3; ++stage) {
      const std::string& printed = row.printed[static_cast<std::size_t>(stage)];
      const int decimals = printed.find('.') == std::string::npos ? 0 : 1;
      table.add(
          fmt::format("{}: stage {}, GB", row.what, stage), printed,
          fmt::format("{:.{}f}", recipe_gigabytes(row.recipe, row.parameters, row.ranks, stage),
                      decimals));
    }
  }
  return table.text();
}

// The paper's table: cells as printed, of which some are cut off instead of rounded.
std::string paper_table() {
  std::map<std::pair<double, std::int64_t>, std::map<int, std::string>> cells;
  std::size_t count = 0;
  for (const json& row : published("model states per device")) {
    const json& in = row.at("inputs");
    const int stage = in.at("zero_stage");
    if (stage == 0) continue;
    const double ours = recipe_gigabytes("zero-paper", in.at("params"), in.at("dp"), stage);
    CHECK(equals_as_printed(ours, row));
    const std::string printed = fmt::format("{:g}", row.at("value").get<double>());
    const std::string exact = fmt::format("{:.6g}", ours);
    cells[{in.at("params").get<double>(), in.at("dp").get<std::int64_t>()}][stage] =
        printed == exact ? printed : fmt::format("{} ({})", printed, exact);
    ++count;
  }
  CHECK(count == 38);
  std::string text =
      "| parameters | ranks | stage 1 | stage 2 | stage 3 |\n|---:|---:|---:|---:|---:|\n";
  for (const auto& [key, stages] : cells) {
    text += fmt::format("| {:g} B | {} |", key.first / 1e9, key.second);
    for (int stage = 1; stage <= 3; ++stage) {
      text += fmt::format(" {} |", stages.contains(stage) ? stages.at(stage) : "");
    }
    text += "\n";
  }
  return text;
}

std::string traffic_table() {
  const auto psi = [](double factor) { return fmt::format("{:g} Psi", factor); };
  Comparison table("article");
  for (const auto& [stage, printed] : std::map<int, double>{{0, 2}, {2, 2}, {3, 3}}) {
    const auto ours = plan::textbook_traffic(static_cast<shard::Stage>(stage), 0, false);
    table.add(fmt::format("stage {}, per rank and step", stage), psi(printed), psi(ours.naive));
  }
  const auto first = plan::textbook_traffic(shard::Stage::kOptimizer, 0, false);
  table.add("stage 1, built naively: all-reduce, then all-gather", psi(3), psi(first.naive));
  table.add("stage 1, reduce-scatter and all-gather", psi(2), psi(first.ours));
  return table.text();
}

// --- the FLOPs chapter

std::string products_table() {
  using plan::ProductKind;
  Comparison table("chapter");
  const auto add = [&](const char* what, ProductKind kind, const std::vector<std::int64_t>& sizes,
                       const char* flops, const char* elements) {
    const plan::ProductPass pass = plan::product_passes(kind, sizes).front();
    table.add(std::string(what) + ": FLOPs", flops, pass.formula);
    table.add(std::string(what) + ": elements read", elements, pass.read_formula);
  };
  add("dot product", ProductKind::kDot, {5}, "2 P", "2 P");
  add("matrix by vector", ProductKind::kMatvec, {5, 7}, "2 N P", "N P + P");
  add("matrix by matrix", ProductKind::kMatmul, {5, 7, 3}, "2 N P M", "N P + P M");
  add("batch of products", ProductKind::kBatched, {2, 5, 7, 3}, "2 G N M K", "G M K + G N K");
  return table.text();
}

// A layer as the chapter has it: D = N H, F = 4 D.
plan::ModelShape chapter_model(std::int64_t width, bool gated) {
  constexpr std::int64_t kHead = 128;
  plan::ModelShape model;
  model.width = width;
  model.vocabulary = 1000;
  plan::LayerShape layer;
  layer.attention.heads = layer.attention.kv_heads = width / kHead;
  layer.attention.key_dim = layer.attention.value_dim = kHead;
  layer.mlp.feed_forward = 4 * width;
  layer.mlp.gated = gated;
  plan::add_layer(model, layer);
  return model;
}

// FLOPs of all passes of an operation, in units of `unit`.
std::string coefficient(const plan::ModelShape& model, const char* operation, std::int64_t tokens,
                        std::int64_t unit, bool exact = false) {
  plan::CostSizes sizes;
  sizes.batch = 2;
  sizes.tokens = tokens;
  std::int64_t sum = 0;
  for (const plan::CostRow& row : plan::training_rows(model, sizes)) {
    if (row.operation == operation) sum += exact ? row.flops.causal_half : row.flops.full;
  }
  CAPTURE(operation);
  CHECK(sum % (2 * tokens * unit) == 0);
  return fmt::format("{}", sum / (2 * tokens * unit));
}

std::string training_table() {
  constexpr std::int64_t kWidth = 1024;
  constexpr std::int64_t kTokens = 256;
  constexpr std::int64_t kFeedForward = 4 * kWidth;
  const plan::ModelShape gated = chapter_model(kWidth, true);
  const plan::ModelShape plain = chapter_model(kWidth, false);
  Comparison table("chapter");
  table.add("gated MLP, in B T D F", "18",
            coefficient(gated, "MLP", kTokens, kWidth * kFeedForward));
  table.add("MLP of two matrices, in B T D F", "12",
            coefficient(plain, "MLP", kTokens, kWidth * kFeedForward));
  // N + K heads of H, with K = N: 2 D.
  table.add("projections of attention, in B T D H (N + K)", "12",
            coefficient(gated, "projections", kTokens, kWidth * 2 * kWidth));
  table.add("scores and values, in B T S N H", "12",
            coefficient(gated, "scores and values", kTokens, kTokens * kWidth));
  table.add("scores and values, causal half", "6",
            coefficient(gated, "scores and values", kTokens, kTokens * kWidth, true));
  table.add("unembedding, in B T D V", "6",
            coefficient(gated, "unembedding", kTokens, kWidth * gated.vocabulary));
  const double crossover = plan::attention_crossover(chapter_model(8192, true));
  table.add("attention's square dominates from T =", "8 D",
            fmt::format("{:g} D", crossover / 8192));
  table.add("... for D = 8 k", "64 k", fmt::format("{:g} k", crossover / 1024));
  return table.text();
}

// copies * bytes * B T D L.
std::string terabytes(double copies) {
  constexpr double kTokens = 4e6;
  const double bytes = copies * 2 * kTokens * 8192 * 64;
  return fmt::format("{:.2g} TB", bytes / 1e12);
}

std::int64_t cache_bytes(std::int64_t tokens, std::int64_t kv_width, std::int64_t layers) {
  plan::LayerShape layer;
  layer.attention = {1, 1, kv_width, kv_width};
  plan::ModelShape model;
  model.layers.push_back({layer, layers});
  plan::InferenceJob job;
  job.context = tokens;
  job.kv_item = 1;
  return plan::kv_cache(model, job).total;
}

std::size_t kept_tensors(network::Checkpoint policy) {
  const auto spec = formats::load_model("llama-3-8b");
  REQUIRE(spec);
  plan::Job job;
  job.sequence = 4096;
  job.precision = plan::Precision::kMixed;
  job.backend = network::Backend::kCuda;
  job.checkpoint = policy;
  return plan::layer_tensors(*spec, job).size();
}

std::string memory_table() {
  Comparison table("chapter");
  table.add("activations, 20 copies: B T = 4 M, L = 64, D = 8192, bf16", "84 TB", terabytes(20));
  table.add("activations, one copy a layer", "4.2 TB", terabytes(1));
  table.add("tensors kept with policy block", "1",
            fmt::format("{}", kept_tensors(network::Checkpoint::kBlock)));
  table.add("tensors kept with policy matmuls: 7 products and the input", "8",
            fmt::format("{}", kept_tensors(network::Checkpoint::kMatmuls)));
  table.add("cache, S = 8192, L = 64, K H = 8192, int8", "8 GiB",
            fmt::format("{} GiB", cache_bytes(8192, 8192, 64) >> 30));
  table.add("cache per token, L = 64, K H = 4096, int8, bytes", "524,288",
            grouped(cache_bytes(1, 4096, 64)));
  plan::ModelShape model = chapter_model(1024, true);
  model.layers.front().shape.mlp.experts = 256;
  model.layers.front().shape.mlp.per_token = 8;
  table.add("sparsity E / k of 8 in 256 experts", "32",
            fmt::format("{:g}", plan::expert_facts(model, {})->sparsity));
  return table.text();
}

TEST_CASE("docs/tour.md: the ZeRO article and the FLOPs chapter, figure by figure") {
  check_tables("docs/tour.md", {{"zero stages", stages_table()},
                                {"zero paper", paper_table()},
                                {"zero traffic", traffic_table()},
                                {"flops products", products_table()},
                                {"flops training", training_table()},
                                {"flops memory", memory_table()}});
}

}  // namespace
}  // namespace plimsoll::test
