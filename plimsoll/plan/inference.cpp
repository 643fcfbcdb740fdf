#include "plimsoll/plan/inference.hpp"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::plan {
namespace {

std::int64_t kept_tokens(const AttentionShape& a, std::int64_t context) {
  return a.window > 0 ? std::min(a.window, context) : context;
}

// Pairs of query and key that a causal pass over `tokens` sees, in one head.
std::int64_t causal_pairs(const AttentionShape& a, std::int64_t tokens) {
  const std::int64_t window = kept_tokens(a, tokens);
  return checked_add(checked_mul(window, window + 1) / 2, checked_mul(tokens - window, window));
}

std::int64_t per_pair(const AttentionShape& a) {
  return checked_mul(2, checked_mul(a.heads, checked_add(a.key_dim, a.value_dim)));
}

// Products of `tokens` tokens with weights; the head for `logits` of them.
std::int64_t weight_flops(const ModelShape& model, std::int64_t tokens, std::int64_t logits) {
  const std::int64_t head = checked_mul(model.vocabulary, model.embedded());
  const std::int64_t body = model.multiplied() - head;
  return checked_add(checked_mul(2, checked_mul(tokens, body)),
                     checked_mul(2, checked_mul(logits, head)));
}

std::int64_t weight_bytes(const ModelShape& model, std::int64_t item, std::int64_t tokens) {
  double unvisited = 0;
  for (const LayerGroup& group : model.layers) {
    const MlpShape& mlp = group.shape.mlp;
    if (mlp.experts == 0) continue;
    const double expert = static_cast<double>(mlp_matrices(mlp)) *
                          static_cast<double>(mlp.feed_forward) * static_cast<double>(model.width);
    unvisited += static_cast<double>(group.count) * expert *
                 (static_cast<double>(mlp.experts) - visited_experts(mlp, tokens));
  }
  const std::int64_t read = model.parameters - model.lookup_parameters - std::llround(unvisited);
  return checked_mul(item, read);
}

InferencePass pass_over(const ModelShape& model, const InferenceJob& job, std::int64_t tokens) {
  const std::int64_t all = checked_mul(job.batch, tokens);
  InferencePass pass;
  pass.flops = weight_flops(model, all, job.batch);
  for (const LayerGroup& group : model.layers) {
    const AttentionShape& a = group.shape.attention;
    const std::int64_t pairs =
        checked_mul(checked_mul(group.count, job.batch), causal_pairs(a, tokens));
    pass.flops = checked_add(pass.flops, checked_mul(pairs, per_pair(a)));
  }
  pass.weight_bytes = weight_bytes(model, job.weight_item, all);
  return pass;
}

}  // namespace

double visited_experts(const MlpShape& mlp, std::int64_t tokens) {
  if (mlp.experts == 0) return 0;
  const double missed = 1 - static_cast<double>(mlp.per_token) / static_cast<double>(mlp.experts);
  return static_cast<double>(mlp.experts) * (1 - std::pow(missed, static_cast<double>(tokens)));
}

std::int64_t InferencePass::bytes() const {
  return checked_add(weight_bytes, checked_add(cache_read, cache_written));
}

double InferencePass::intensity() const {
  return bytes() == 0 ? 0 : static_cast<double>(flops) / static_cast<double>(bytes());
}

KvCache kv_cache(const ModelShape& model, const InferenceJob& job) {
  KvCache cache;
  for (const LayerGroup& group : model.layers) {
    const AttentionShape& a = group.shape.attention;
    if (a.heads == 0) continue;
    const std::int64_t layer = checked_mul(job.kv_item, a.cached_values());
    cache.lines.push_back(
        {group.count, a.latent() ? "latent + rotary" : "K (H key + H value)", layer, a.window});
    const std::int64_t layers = checked_mul(group.count, layer);
    cache.bytes_per_token = checked_add(cache.bytes_per_token, layers);
    cache.bytes_per_row =
        checked_add(cache.bytes_per_row, checked_mul(layers, kept_tokens(a, job.context)));
  }
  cache.total = checked_mul(job.batch, cache.bytes_per_row);
  return cache;
}

InferencePass prefill(const ModelShape& model, const InferenceJob& job) {
  InferencePass pass = pass_over(model, job, job.prompt);
  InferenceJob filled = job;
  filled.context = job.prompt;
  pass.cache_written = kv_cache(model, filled).total;
  return pass;
}

InferencePass decode(const ModelShape& model, const InferenceJob& job) {
  InferencePass pass;
  pass.flops = weight_flops(model, job.batch, job.batch);
  for (const LayerGroup& group : model.layers) {
    const AttentionShape& a = group.shape.attention;
    // The new token sees itself too.
    const std::int64_t keys = kept_tokens(a, checked_add(job.context, 1));
    const std::int64_t pairs = checked_mul(checked_mul(group.count, job.batch), keys);
    pass.flops = checked_add(pass.flops, checked_mul(pairs, per_pair(a)));
  }
  const KvCache cache = kv_cache(model, job);
  pass.weight_bytes = weight_bytes(model, job.weight_item, job.batch);
  pass.cache_read = cache.total;
  pass.cache_written = checked_mul(job.batch, cache.bytes_per_token);
  return pass;
}

InferencePass decode_without_cache(const ModelShape& model, const InferenceJob& job) {
  return pass_over(model, job, checked_add(job.context, 1));
}

}  // namespace plimsoll::plan
