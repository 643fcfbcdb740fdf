// ModelShape: the sizes of a transformer's layers, from which FLOPs, bytes and caches follow.
//
// Made from a NetworkSpec, or from configs that have no timeline yet (mixtures of experts, latent
// attention). Letters: D width, F feed-forward width, N query heads, K key/value heads, H head size,
// V vocabulary, E experts, k experts per token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/network/spec.hpp"

namespace plimsoll::plan {

struct AttentionShape {
  std::int64_t heads = 0;      // N; 0: the layer has no attention
  std::int64_t kv_heads = 0;   // K
  std::int64_t key_dim = 0;    // H of queries and keys
  std::int64_t value_dim = 0;  // H of values
  std::int64_t window = 0;     // keys that a query sees, itself included; 0: all before it
  // Latent attention (MLA): keys and values are made of one latent of kv_rank values per token, and
  // rope_dim more that carry the position; the cache holds only these. 0: none.
  std::int64_t kv_rank = 0;
  std::int64_t rope_dim = 0;
  std::int64_t query_rank = 0;  // queries too come from a latent; 0: from the input

  bool latent() const { return kv_rank > 0; }
  // Values per token that a cache keeps: K (key + value), or the latent and its rotary part.
  std::int64_t cached_values() const;
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

struct MlpShape {
  std::int64_t feed_forward = 0;  // F, of one expert when there are several
  bool gated = true;              // three matrices, else two
  std::int64_t experts = 0;       // E; 0: one dense MLP
  std::int64_t per_token = 0;     // k
  std::int64_t shared = 0;        // F of the shared experts together; 0: none
  bool shared_gate = false;       // the shared expert has a gate of D values

  friend bool operator==(const MlpShape&, const MlpShape&) = default;
};

struct LayerShape {
  AttentionShape attention;
  MlpShape mlp;
  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};

// `count` equal layers; groups need not be neighbours.
struct LayerGroup {
  LayerShape shape;
  std::int64_t count = 1;
};

struct ModelShape {
  std::string title;
  std::int64_t width = 0;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;
  bool tied_head = false;
  std::int64_t heads = 1;  // unembeddings: one, and one per extra predicted token (MTP)
  std::vector<LayerGroup> layers;
  std::int64_t parameters = 0;         // ties once
  std::int64_t inactive = 0;           // of these, in experts that a token does not visit
  std::int64_t lookup_parameters = 0;  // of these, in tables that are only looked up
  bool causal = true;
  // Width of the embedding where projections lead in and out; 0: D.
  std::int64_t embedding_width = 0;
  bool head_transform = false;  // one more product D D before the head (bert)

  std::int64_t embedded() const { return embedding_width > 0 ? embedding_width : width; }
  std::int64_t layer_count() const;
  // Parameters that one token touches, embeddings included.
  std::int64_t active() const { return parameters - inactive; }
  // Those that it is multiplied with.
  std::int64_t multiplied() const { return active() - lookup_parameters; }
  bool has_experts() const;
};

// Adds one layer to its group.
void add_layer(ModelShape& model, const LayerShape& layer);

// Weights of one layer's products with activations, biases and norms not counted.
std::int64_t attention_weights(const AttentionShape& attention, std::int64_t width);
std::int64_t mlp_matrices(const MlpShape& mlp);  // 3 when gated, else 2

// Parameters of experts that a token does not visit: (E - k) matrices D F, per MoE layer.
std::int64_t inactive_expert_parameters(const ModelShape& model);

// Of a transformer that can be planned; not for image networks.
ModelShape shape_of(const network::NetworkSpec& spec);

}  // namespace plimsoll::plan
