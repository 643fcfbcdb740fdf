#include "plimsoll/plan/cost.hpp"

namespace plimsoll::plan {
namespace {

// Of one token against one key, forward, all layers; with a window when `windows`.
double attention_per_pair(const LayerGroup& group) {
  const AttentionShape& a = group.shape.attention;
  return 2.0 * static_cast<double>(group.count) * static_cast<double>(a.heads) *
         static_cast<double>(a.key_dim + a.value_dim);
}

TokenConvention counted(const char* name, const char* attention, std::int64_t flops,
                        std::int64_t tokens) {
  return {name, std::string("3 (products with weights + ") + attention + ")",
          3 * static_cast<double>(flops) / static_cast<double>(tokens)};
}

}  // namespace

double training_flops_per_token(const ModelShape& model, std::int64_t tokens, bool windows) {
  // Every extra predicted token multiplies the unembedding once more.
  const double heads = static_cast<double>(model.heads - 1) *
                       static_cast<double>(model.vocabulary) * static_cast<double>(model.width);
  double attention = 0;
  for (const LayerGroup& group : model.layers) {
    const std::int64_t window = group.shape.attention.window;
    if (window == 0 || window >= tokens) {
      attention += 3 * attention_per_pair(group) * static_cast<double>(tokens) / 2;
    } else if (windows) {
      attention += 3 * attention_per_pair(group) * static_cast<double>(window);
    }
  }
  return 6 * (static_cast<double>(model.multiplied()) + heads) + attention;
}

std::vector<TokenConvention> token_conventions(const ModelShape& model, std::int64_t tokens) {
  CostSizes sizes;
  sizes.tokens = tokens;
  const ConventionFlops forward = sum_flops(training_rows(model, sizes), "forward");
  return {
      {"6N", "6 active parameters", 6 * static_cast<double>(model.active())},
      {"6N + attention", "6 (active - looked up) + 3 T N (key + value) per layer without a window",
       training_flops_per_token(model, tokens, false)},
      counted("attention full", "the whole square", forward.full, tokens),
      counted("causal half", "half of it", forward.causal_half, tokens),
      counted("causal exact", "the pairs that the mask leaves", forward.causal_exact, tokens)};
}

double attention_crossover(const ModelShape& model) {
  CostSizes one;
  const auto rows = training_rows(model, one);
  double other = 0;
  double square = 0;
  for (const CostRow& row : rows) {
    const bool layers = row.operation == "projections" || row.operation == "MLP" ||
                        row.operation.find("expert") != std::string::npos ||
                        row.operation == "router" || row.operation == "scores and values";
    if (row.pass != "forward" || !layers) continue;
    (row.operation == "scores and values" ? square : other) += static_cast<double>(row.flops.full);
  }
  return square == 0 ? 0 : other / square;
}

std::optional<ExpertFacts> expert_facts(const ModelShape& model, const CostSizes& sizes) {
  ExpertFacts facts;
  for (const LayerGroup& group : model.layers) {
    if (group.shape.mlp.experts == 0) continue;
    facts.layers += group.count;
    facts.experts = group.shape.mlp.experts;
    facts.per_token = group.shape.mlp.per_token;
  }
  if (facts.layers == 0) return std::nullopt;
  facts.sparsity = static_cast<double>(facts.experts) / static_cast<double>(facts.per_token);
  facts.all_to_all_bytes =
      checked_mul(checked_mul(sizes.item, checked_mul(sizes.batch, sizes.tokens)),
                  checked_mul(facts.per_token, model.width));
  facts.exchanges = checked_mul(4, facts.layers);
  return facts;
}

}  // namespace plimsoll::plan
