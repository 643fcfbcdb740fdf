#include "plimsoll/plan/model_shape.hpp"

#include <algorithm>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::plan {

std::int64_t AttentionShape::cached_values() const {
  if (latent()) return checked_add(kv_rank, rope_dim);
  return checked_mul(kv_heads, checked_add(key_dim, value_dim));
}

std::int64_t ModelShape::layer_count() const {
  std::int64_t count = 0;
  for (const LayerGroup& group : layers) count = checked_add(count, group.count);
  return count;
}

bool ModelShape::has_experts() const {
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerGroup& group) { return group.shape.mlp.experts > 0; });
}

void add_layer(ModelShape& model, const LayerShape& layer) {
  for (LayerGroup& group : model.layers) {
    if (group.shape == layer) {
      ++group.count;
      return;
    }
  }
  model.layers.push_back({layer, 1});
}

std::int64_t attention_weights(const AttentionShape& a, std::int64_t width) {
  const std::int64_t queries = checked_mul(a.heads, a.key_dim);
  const std::int64_t output = checked_mul(checked_mul(a.heads, a.value_dim), width);
  const std::int64_t query = a.query_rank > 0
                                 ? checked_mul(a.query_rank, checked_add(width, queries))
                                 : checked_mul(width, queries);
  if (!a.latent())
    return checked_add(checked_add(query, output), checked_mul(width, a.cached_values()));
  const std::int64_t per_head = checked_add(a.key_dim - a.rope_dim, a.value_dim);
  const std::int64_t down = checked_mul(width, a.cached_values());
  const std::int64_t up = checked_mul(a.kv_rank, checked_mul(a.heads, per_head));
  return checked_add(checked_add(query, output), checked_add(down, up));
}

std::int64_t mlp_matrices(const MlpShape& mlp) { return mlp.gated ? 3 : 2; }

std::int64_t inactive_expert_parameters(const ModelShape& model) {
  std::int64_t sum = 0;
  for (const LayerGroup& group : model.layers) {
    const MlpShape& mlp = group.shape.mlp;
    const std::int64_t expert =
        checked_mul(mlp_matrices(mlp), checked_mul(model.width, mlp.feed_forward));
    sum = checked_add(sum,
                      checked_mul(group.count, checked_mul(mlp.experts - mlp.per_token, expert)));
  }
  return sum;
}

namespace {

LayerShape layer_of(const network::NetworkSpec& spec, std::int64_t index) {
  LayerShape layer;
  layer.attention.heads = spec.heads;
  layer.attention.kv_heads = spec.kv_heads;
  layer.attention.key_dim = layer.attention.value_dim = spec.head_dim;
  layer.attention.window = spec.layer(index).window;
  layer.mlp = {spec.feed_forward, spec.architecture.gated};
  return layer;
}

// Tables whose rows are picked: a tied embedding is multiplied by the head, so it is none.
std::int64_t lookup_parameters(const network::NetworkSpec& spec, std::int64_t embedding_width) {
  const network::Architecture& a = spec.architecture;
  std::int64_t sum = spec.tied_head ? 0 : checked_mul(spec.vocabulary, embedding_width);
  if (a.positions == network::Positions::kLearned) {
    sum = checked_add(sum, checked_mul(checked_add(spec.positions, a.position_offset), spec.width));
  }
  return checked_add(sum, checked_mul(a.token_types, spec.width));
}

}  // namespace

ModelShape shape_of(const network::NetworkSpec& spec) {
  check(spec.family != network::Family::kCnn, "an image network has no transformer shape");
  const network::Architecture& a = spec.architecture;
  ModelShape model;
  model.title = spec.title;
  model.width = spec.width;
  model.embedding_width = a.embedding_width > 0 ? a.embedding_width : spec.width;
  model.vocabulary = spec.vocabulary;
  model.positions = spec.positions;
  model.tied_head = spec.tied_head;
  model.causal = a.causal;
  model.head_transform = a.masked_head;
  for (const network::ParameterTerm& term : network::parameter_terms(spec)) {
    model.parameters = checked_add(model.parameters, term.count);
  }
  for (std::int64_t i = 0; i < spec.layers; ++i) add_layer(model, layer_of(spec, i));
  model.lookup_parameters = lookup_parameters(spec, model.embedding_width);
  return model;
}

}  // namespace plimsoll::plan
