#include "plimsoll/network/families/weight_names.hpp"

#include <array>
#include <utility>

#include "plimsoll/network/spec.hpp"

namespace plimsoll::network {
namespace {

WeightNames minigpt() {
  WeightNames n;
  n.token = "wte";
  n.position = "wpe";
  n.layer = "blocks.{}";
  n.final_norm = "ln_f";
  n.qkv = "attn.qkv";
  n.output = "attn.proj";
  n.up = "mlp.fc";
  n.down = "mlp.proj";
  n.attention_in = "ln1";
  n.mlp_in = "ln2";
  n.norms = NormOrder::kBefore;
  return n;
}

WeightNames gpt2() {
  WeightNames n;
  n.token = "transformer.wte";
  n.position = "transformer.wpe";
  n.layer = "transformer.h.{}";
  n.final_norm = "transformer.ln_f";
  n.qkv = "attn.c_attn";
  n.output = "attn.c_proj";
  n.up = "mlp.c_fc";
  n.down = "mlp.c_proj";
  n.attention_in = "ln_1";
  n.mlp_in = "ln_2";
  n.norms = NormOrder::kBefore;
  return n;
}

WeightNames gptj() {
  WeightNames n = gpt2();
  n.q = "attn.q_proj";
  n.k = "attn.k_proj";
  n.v = "attn.v_proj";
  n.qkv = "attn.qkv_proj";
  n.output = "attn.out_proj";
  n.up = "mlp.fc_in";
  n.down = "mlp.fc_out";
  return n;
}

WeightNames gpt_neox() {
  WeightNames n;
  n.token = "gpt_neox.embed_in";
  n.layer = "gpt_neox.layers.{}";
  n.final_norm = "gpt_neox.final_layer_norm";
  n.norms = NormOrder::kFirst;
  n.qkv = "attention.query_key_value";
  n.output = "attention.dense";
  n.up = "mlp.dense_h_to_4h";
  n.down = "mlp.dense_4h_to_h";
  return n;
}

WeightNames bloom() {
  WeightNames n;
  n.token = "transformer.word_embeddings";
  n.embedding_norm = "transformer.word_embeddings_layernorm";
  n.layer = "transformer.h.{}";
  n.norms = NormOrder::kBefore;
  n.final_norm = "transformer.ln_f";
  n.qkv = "self_attention.query_key_value";
  n.output = "self_attention.dense";
  n.up = "mlp.dense_h_to_4h";
  n.down = "mlp.dense_4h_to_h";
  return n;
}

// The newer architecture with two norms calls them after their branches.
WeightNames falcon(const NetworkSpec& spec) {
  WeightNames n = bloom();
  n.norms = NormOrder::kLast;
  const Architecture& a = spec.architecture;
  if (a.qkv == QkvLayout::kByGroup && a.parallel && !a.shared_norm) {
    n.attention_in = "ln_attn";
    n.mlp_in = "ln_mlp";
  }
  return n;
}

WeightNames opt() {
  WeightNames n;
  n.token = "model.decoder.embed_tokens";
  n.position = "model.decoder.embed_positions";
  n.project_in = "model.decoder.project_in";
  n.project_out = "model.decoder.project_out";
  n.layer = "model.decoder.layers.{}";
  n.final_norm = "model.decoder.final_layer_norm";
  n.output = "self_attn.out_proj";
  n.up = "fc1";
  n.down = "fc2";
  n.norms = NormOrder::kAfter;
  n.attention_in = n.attention_out = "self_attn_layer_norm";
  n.mlp_in = n.mlp_out = "final_layer_norm";
  return n;
}

WeightNames biogpt() {
  WeightNames n = opt();
  n.token = "biogpt.embed_tokens";
  n.position = "biogpt.embed_positions";
  n.layer = "biogpt.layers.{}";
  n.final_norm = "biogpt.layer_norm";
  n.head = "output_projection";
  return n;
}

WeightNames phi() {
  WeightNames n;
  n.final_norm = "model.final_layernorm";
  n.output = "self_attn.dense";
  n.q_norm = "self_attn.q_layernorm";
  n.k_norm = "self_attn.k_layernorm";
  n.up = "mlp.fc1";
  n.down = "mlp.fc2";
  return n;
}

WeightNames persimmon() {
  WeightNames n = phi();
  n.qkv = "self_attn.query_key_value";
  n.up = "mlp.dense_h_to_4h";
  n.down = "mlp.dense_4h_to_h";
  return n;
}

WeightNames stablelm() {
  WeightNames n;
  n.q_norm = "self_attn.q_layernorm.norms.{}";  // {}: the head
  n.k_norm = "self_attn.k_layernorm.norms.{}";
  return n;
}

WeightNames starcoder2() {
  WeightNames n;
  n.up = "mlp.c_fc";
  n.down = "mlp.c_proj";
  return n;
}

WeightNames gemma2() {
  WeightNames n;
  n.mlp_in = "pre_feedforward_layernorm";
  return n;
}

WeightNames glm4() {
  WeightNames n;
  n.attention_out = "post_self_attn_layernorm";
  n.mlp_out = "post_mlp_layernorm";
  return n;
}

WeightNames hunyuan() {
  WeightNames n;
  n.q_norm = "self_attn.query_layernorm";
  n.k_norm = "self_attn.key_layernorm";
  return n;
}

WeightNames bert() {
  WeightNames n;
  n.token = "bert.embeddings.word_embeddings";
  n.position = "bert.embeddings.position_embeddings";
  n.token_type = "bert.embeddings.token_type_embeddings";
  n.embedding_norm = "bert.embeddings.LayerNorm";
  n.layer = "bert.encoder.layer.{}";
  n.final_norm = "";
  n.head = "cls.predictions.decoder";
  n.head_dense = "cls.predictions.transform.dense";
  n.head_norm = "cls.predictions.transform.LayerNorm";
  n.head_bias = "cls.predictions";
  n.q = "attention.self.query";
  n.k = "attention.self.key";
  n.v = "attention.self.value";
  n.output = "attention.output.dense";
  n.up = "intermediate.dense";
  n.down = "output.dense";
  n.norms = NormOrder::kAfter;
  n.attention_out = "attention.output.LayerNorm";
  n.mlp_out = "output.LayerNorm";
  return n;
}

WeightNames distilbert() {
  WeightNames n = bert();
  n.token = "distilbert.embeddings.word_embeddings";
  n.position = "distilbert.embeddings.position_embeddings";
  n.embedding_norm = "distilbert.embeddings.LayerNorm";
  n.layer = "distilbert.transformer.layer.{}";
  n.head = "vocab_projector";
  n.head_dense = "vocab_transform";
  n.head_norm = "vocab_layer_norm";
  n.head_bias = "vocab_projector";
  n.q = "attention.q_lin";
  n.k = "attention.k_lin";
  n.v = "attention.v_lin";
  n.output = "attention.out_lin";
  n.up = "ffn.lin1";
  n.down = "ffn.lin2";
  n.attention_out = "sa_layer_norm";
  n.mlp_out = "output_layer_norm";
  return n;
}

WeightNames roberta() {
  WeightNames n = bert();
  n.token = "roberta.embeddings.word_embeddings";
  n.position = "roberta.embeddings.position_embeddings";
  n.token_type = "roberta.embeddings.token_type_embeddings";
  n.embedding_norm = "roberta.embeddings.LayerNorm";
  n.layer = "roberta.encoder.layer.{}";
  n.head = "lm_head.decoder";
  n.head_dense = "lm_head.dense";
  n.head_norm = "lm_head.layer_norm";
  n.head_bias = "lm_head";
  return n;
}

using Entry = std::pair<std::string_view, WeightNames (*)()>;
constexpr std::array<Entry, 18> kByType = {{
    {"gptj", gptj},
    {"codegen", gptj},
    {"gpt_neox", gpt_neox},
    {"bloom", bloom},
    {"opt", opt},
    {"biogpt", biogpt},
    {"phi", phi},
    {"persimmon", persimmon},
    {"stablelm", stablelm},
    {"starcoder2", starcoder2},
    {"gemma2", gemma2},
    {"gemma3_text", gemma2},
    {"gemma3", gemma2},
    {"glm4", glm4},
    {"hunyuan_v1_dense", hunyuan},
    {"bert", bert},
    {"distilbert", distilbert},
    {"roberta", roberta},
}};

}  // namespace

WeightNames weight_names(const NetworkSpec& spec) {
  if (spec.family == Family::kMiniGpt) return minigpt();
  if (spec.family == Family::kGpt2 || spec.model_type == "gpt_bigcode") return gpt2();
  if (spec.model_type == "falcon") return falcon(spec);
  for (const auto& [type, names] : kByType) {
    if (type == spec.model_type) return names();
  }
  return {};
}

}  // namespace plimsoll::network
