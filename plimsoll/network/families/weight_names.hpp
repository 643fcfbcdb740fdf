// How a model type's state dict calls its parameters, as transformers spells them.
//
// Each entry is the name without ".weight" and ".bias". Names of a layer stand behind `layer`, in
// which {} is the layer's number. An empty entry: the family has no such parameter.
#pragma once

#include <cstdint>
#include <string_view>

namespace plimsoll::network {

struct NetworkSpec;

// Where a layer's norms stand among its parameters, which is the order of the optimizer.
enum class NormOrder : std::uint8_t {
  kLast,    // attention, MLP, norms
  kFirst,   // norms, attention, MLP
  kBefore,  // each before its branch
  kAfter,   // each after its branch
};

struct WeightNames {
  std::string_view token = "model.embed_tokens";
  std::string_view position = "";
  std::string_view token_type = "";
  std::string_view embedding_norm = "";
  std::string_view project_in = "";
  std::string_view project_out = "";
  std::string_view layer = "model.layers.{}";
  std::string_view final_norm = "model.norm";
  std::string_view head = "lm_head";
  std::string_view head_dense = "";  // of a masked-token head
  std::string_view head_norm = "";
  std::string_view head_bias = "";  // with its own ".bias" name

  // --- of a layer
  std::string_view q = "self_attn.q_proj";
  std::string_view k = "self_attn.k_proj";
  std::string_view v = "self_attn.v_proj";
  std::string_view qkv = "self_attn.qkv_proj";
  std::string_view output = "self_attn.o_proj";
  std::string_view q_norm = "self_attn.q_norm";
  std::string_view k_norm = "self_attn.k_norm";
  std::string_view gate = "mlp.gate_proj";
  std::string_view up = "mlp.up_proj";
  std::string_view gate_up = "mlp.gate_up_proj";
  std::string_view down = "mlp.down_proj";
  std::string_view attention_in = "input_layernorm";  // before attention
  std::string_view attention_out =
      "post_attention_layernorm";                           // on its result, or the sum after it
  std::string_view mlp_in = "post_attention_layernorm";     // before the MLP
  std::string_view mlp_out = "post_feedforward_layernorm";  // on its result, or the sum after it
  NormOrder norms = NormOrder::kLast;
};

// By family for the inline model and gpt2, else by model type; llama's for a type without an entry.
WeightNames weight_names(const NetworkSpec& spec);

}  // namespace plimsoll::network
