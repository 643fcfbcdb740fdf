// Architecture: how a transformer's layers are put together, as features and not as families.
//
// The default is llama's. A family is a set of values: qwen3 is llama with norms on queries and keys,
// gpt2 is learned positions, LayerNorms, one matrix for q, k and v and a plain MLP. Both forward
// functions (plimsoll's and transformers') and the parameter lists read these values.
// Sizes stand in NetworkSpec. Letters: N query heads, K key/value heads, H head size.
#pragma once

#include <cstdint>

namespace plimsoll::network {

enum class NormKind : std::uint8_t {
  kRms,           // x / rms(x) * w
  kRmsOnePlus,    // x / rms(x) * (1 + w): gemma
  kLayer,         // LayerNorm: the mean is removed first
  kLayerOnePlus,  // LayerNorm with (1 + w): nemotron
};
constexpr bool is_layer_norm(NormKind kind) {
  return kind == NormKind::kLayer || kind == NormKind::kLayerOnePlus;
}
constexpr bool adds_one(NormKind kind) {
  return kind == NormKind::kRmsOnePlus || kind == NormKind::kLayerOnePlus;
}

enum class NormPlacement : std::uint8_t {
  kPre,           // x + f(norm(x))
  kOutput,        // x + norm(f(x)): olmo2, olmo3
  kBoth,          // x + norm(f(norm(x))): gemma2, gemma3, glm4
  kPostResidual,  // norm(x + f(x)): bert, opt-350m
};

enum class QkvLayout : std::uint8_t {
  kSeparate,  // three matrices
  kInOrder,   // one: all query heads, all key heads, all value heads (gpt2, phi3, falcon-7b)
  kByHead,    // one: per head its query, key and value (gpt-neox, bloom, falcon-rw)
  kByGroup,   // one: per key/value head its queries, then key and value (falcon-40b)
};

enum class QkNorm : std::uint8_t {
  kNone,
  kPerHead,     // one weight [H] for all heads (qwen3, gemma3)
  kPerHeadOwn,  // a weight [H] of its own for every head (stablelm-2-12b)
  kWhole,       // over all heads at once: weights [N H] and [K H] (olmo2, olmo3)
};

enum class Positions : std::uint8_t {
  kRotary,
  kLearned,  // a table [T + offset, D]
  kAlibi,    // a bias per head that grows with distance
};

struct Architecture {
  bool causal = true;  // false: every token sees every token (bert)

  // --- embeddings
  Positions positions = Positions::kRotary;
  std::int64_t position_offset = 0;  // rows of the learned table before the first position (opt: 2)
  std::int64_t token_types = 0;      // rows of bert's segment table
  double embedding_scale = 1;        // embeddings are multiplied by it (gemma, granite)
  bool embedding_norm = false;       // a norm right after the embeddings (bloom, bert)
  std::int64_t embedding_width = 0;  // 0: D. Else projections lead in and out (opt-350m)

  // --- norms
  NormKind norm = NormKind::kRms;
  bool norm_weight = true;  // olmo's first version has none
  bool norm_bias = false;   // LayerNorm with a bias
  NormPlacement placement = NormPlacement::kPre;
  bool final_norm = true;
  bool parallel = false;     // x + attention(norm(x)) + mlp(norm(x))
  bool shared_norm = false;  // parallel: one norm for both branches (falcon-7b, phi, cohere)

  // --- attention
  QkvLayout qkv = QkvLayout::kSeparate;
  bool qkv_bias = false;  // biases of q, k, v alone; NetworkSpec::attention_bias adds the output's
  QkNorm qk_norm = QkNorm::kNone;
  bool qk_norm_after_rotary = false;  // hunyuan
  bool qk_norm_bias = false;          // LayerNorms on queries and keys with a bias (phi, persimmon)
  std::int64_t rotary_dim = 0;        // elements of a head that are turned; 0: all H
  bool rotary_interleaved = false;    // checkpoints pair neighbours (cohere, glm)
  double attention_scale = 0;         // of the scores; 0: 1 / sqrt(H)
  double attention_softcap = 0;       // scores = cap * tanh(scores / cap); 0: none (gemma2)
  double qkv_clip = 0;                // q, k, v are clamped to +- this; 0: none (olmo)

  // --- MLP
  bool gated = true;                // down(act(gate(x)) * up(x)); else down(act(up(x)))
  bool fused_gate_up = false;       // one matrix for both (phi3, glm)
  bool squared_activation = false;  // the activation's result is squared: relu2 (nemotron)

  // --- residual stream and head
  double residual_scale = 1;  // branches are multiplied by it before they are added (granite)
  double logit_scale = 1;     // logits are multiplied by it (cohere, granite)
  double logit_softcap = 0;   // logits = cap * tanh(logits / cap); 0: none (gemma2)
  bool head_bias = false;     // phi
  bool masked_head = false;  // bert: dense, activation and norm before the tied decoder with a bias

  // --- where job.dropout acts besides attention's probabilities
  bool embedding_dropout = false;
  bool residual_dropout = false;  // on the results of attention and MLP

  friend bool operator==(const Architecture&, const Architecture&) = default;
};

// Norms of one layer over D, those of queries and keys not counted.
constexpr std::int64_t norms_per_layer(const Architecture& a) {
  return (a.placement == NormPlacement::kBoth ? 4 : 2) - (a.shared_norm ? 1 : 0);
}

// What may differ from layer to layer.
struct LayerFacts {
  std::int64_t window = 0;  // keys that a query sees, itself included; 0: all before it
  bool rotary = true;       // false: this layer has no positions (smollm3, cohere2)
  double rope_theta = 0;    // 0: NetworkSpec::rope_theta (gemma3 has a local one)

  friend bool operator==(const LayerFacts&, const LayerFacts&) = default;
};

// GPT-2's: learned positions, LayerNorm with bias, one matrix for q, k and v, a plain MLP.
Architecture gpt_architecture();

// BERT's: an encoder with LayerNorms after the residual sums and a masked-token head.
Architecture bert_architecture();

}  // namespace plimsoll::network
