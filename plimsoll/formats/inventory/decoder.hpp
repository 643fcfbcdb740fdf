// The parts that decoders with the module names of Llama share: model.embed_tokens, model.layers.0.,
// self_attn.q_proj, mlp.gate_proj, model.norm, lm_head.
//
// A family reads as its layers do: begin(), then for each layer attention(), mlp(), norms() or what
// it has in their place, then finish().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/formats/config_reader.hpp"
#include "plimsoll/network/inventory.hpp"

namespace plimsoll::formats {

using network::InventoryBuilder;
using network::ParameterRole;

enum class MlpKind : std::uint8_t {
  kGated,       // gate_proj, up_proj, down_proj
  kFusedGated,  // gate_up_proj, down_proj
  kPlain,       // up_proj, down_proj
};

// What layer_types call a layer with attention over all positions.
inline constexpr std::string_view kFullAttention = "full_attention";

enum class QkNorm : std::uint8_t {
  kNone,
  kHead,   // [H], shared by all heads
  kWidth,  // over all heads at once
};

struct DecoderStyle {
  bool qkv_bias = false;
  bool out_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;
  bool norm_bias = false;
  bool norm_weights = true;
  bool tied = true;            // false: the class never ties its head
  bool square_out = false;     // the output projection is [D, D], whatever the heads
  bool fused_qkv = false;      // self_attn.qkv_proj
  bool rotary_buffers = true;  // rotary_emb.inv_freq and its original
  bool scaled_embedding = false;
  MlpKind mlp = MlpKind::kGated;
  QkNorm qk_norm = QkNorm::kNone;
  std::string_view q_norm = "self_attn.q_norm";
  std::string_view k_norm = "self_attn.k_norm";
  std::string_view out = "self_attn.o_proj";
  std::string_view up = "mlp.up_proj";
  std::string_view down = "mlp.down_proj";
  std::vector<std::string_view> norms = {"input_layernorm", "post_attention_layernorm"};
  std::string_view final_norm = "model.norm";
};

class Decoder {
 public:
  // Reads the sizes that all decoders have; feed_forward stays 1 when `feed_forward_key` is empty.
  Decoder(ConfigReader& reader, InventoryBuilder& builder, DecoderStyle style,
          std::string_view feed_forward_key = "intermediate_size");

  std::int64_t vocabulary = 1;    // V
  std::int64_t width = 1;         // D
  std::int64_t layers = 1;        // L
  std::int64_t heads = 1;         // N
  std::int64_t kv_heads = 1;      // K
  std::int64_t head_dim = 1;      // H
  std::int64_t feed_forward = 1;  // F

  void begin();
  void enter(std::int64_t layer);
  void attention();
  void mlp();
  // gate_proj, up_proj and down_proj under another name.
  void gated_mlp(std::string_view name, std::int64_t inner, bool bias, ParameterRole role);
  // gate_up_proj [E, 2 F, D] and down_proj [E, D, F] of all experts, `used` of them by a token.
  void experts(std::string_view name, std::int64_t count, std::int64_t inner, std::int64_t used);
  void router(std::string_view name, std::int64_t count, bool bias = false);
  void norms();
  void finish();

  // inv_freq and original_inv_freq under a module's name, for heads of which `elements` turn.
  void rotary(std::string_view module, std::int64_t elements);
  // Elements of a head that turn.
  std::int64_t turning(std::string_view layer_type = {}) const;

  ConfigReader& reader;
  InventoryBuilder& g;
  DecoderStyle style;

 private:
  void query_key_norms();
  void rotary_tables();
  bool has_layers_of(std::string_view kind) const;

  bool tied_ = false;
};

// A reader for each of the layers in turn, between begin() and finish().
template <class Layer>
void write_decoder(Decoder& decoder, Layer layer) {
  decoder.begin();
  for (std::int64_t i = 0; i < decoder.layers; ++i) {
    decoder.enter(i);
    layer(i);
  }
  decoder.finish();
}

}  // namespace plimsoll::formats
