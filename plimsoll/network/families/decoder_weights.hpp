// The parameters of a transformer, made from its architecture: one list for every forward function.
#pragma once

#include <vector>

#include "plimsoll/network/families/families.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/network/spec.hpp"

namespace plimsoll::network {

// A matrix [out, in] or a vector, and its bias; kNoValue where the model has none. With an adapter of
// rank r its matrices [r, in] and [out, r].
struct Affine {
  ValueId weight = kNoValue;
  ValueId bias = kNoValue;
  ValueId adapter_a = kNoValue;
  ValueId adapter_b = kNoValue;
};

// Letters: D width, F feed-forward width, N query heads, K key/value heads, H head size.
struct LayerWeights {
  Affine q, k, v;                      // [N H, D], [K H, D], [K H, D]; none when fused
  Affine qkv;                          // [(N + 2 K) H, D]
  Affine output;                       // [D, N H]
  std::vector<Affine> q_norm, k_norm;  // one, or one per head
  Affine gate, up;                     // [F, D]; none when fused, gate none without gating
  Affine gate_up;                      // [2 F, D]
  Affine down;                         // [D, F]
  Affine attention_in, attention_out, mlp_in, mlp_out;  // norms by place
};

struct TransformerWeights {
  ValueId token = kNoValue;       // [V, D or embedding_width]
  ValueId position = kNoValue;    // [T + offset, D]
  ValueId token_type = kNoValue;  // [token_types, D]
  Affine embedding_norm;
  Affine project_in, project_out;  // [D, E] and [E, D]
  std::vector<LayerWeights> layers;
  Affine final_norm;
  Affine head;        // weight is `token` when tied
  Affine head_dense;  // [D, D]
  Affine head_norm;
};

// The place of a layer's parameters: "model.layers.3". Also what timelines call its operations.
std::string layer_label(const NetworkSpec& spec, std::int64_t layer);

// Makes all parameters in `g`, those of a layer in that layer's unit, others in unit -1; with
// options.lora its adapters, and everything but them frozen.
TransformerWeights make_weights(Builder& g, const NetworkSpec& spec, const BuildOptions& options);

}  // namespace plimsoll::network
