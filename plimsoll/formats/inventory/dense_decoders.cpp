// Decoders in which every layer is attention and one MLP, with the module names of Llama.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/class_keys.hpp"
#include "plimsoll/formats/inventory/decoder.hpp"
#include "plimsoll/formats/inventory/families.hpp"

namespace plimsoll::formats {
namespace {

void write_dense(ConfigReader& reader, InventoryBuilder& g, DecoderStyle style) {
  Decoder d(reader, g, std::move(style));
  write_decoder(d, [&](std::int64_t) {
    d.attention();
    d.mlp();
    d.norms();
  });
}

DecoderStyle attention_bias(ConfigReader& reader) {
  DecoderStyle style;
  style.qkv_bias = style.out_bias = reader.flag("attention_bias");
  return style;
}

DecoderStyle attention_and_mlp_bias(ConfigReader& reader) {
  DecoderStyle style = attention_bias(reader);
  style.mlp_bias = reader.flag("mlp_bias");
  return style;
}

void llama(ConfigReader& reader, InventoryBuilder& g) {
  write_dense(reader, g, attention_and_mlp_bias(reader));
}

void mistral(ConfigReader& reader, InventoryBuilder& g) { write_dense(reader, g, {}); }

void qwen2(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style;
  style.qkv_bias = true;
  write_dense(reader, g, style);
}

void qwen3(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_bias(reader);
  style.qk_norm = QkNorm::kHead;
  write_dense(reader, g, style);
}

void gemma(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_bias(reader);
  style.scaled_embedding = true;
  write_dense(reader, g, style);
}

DecoderStyle gemma2_style(ConfigReader& reader) {
  DecoderStyle style = attention_bias(reader);
  style.scaled_embedding = true;
  style.norms = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                 "post_feedforward_layernorm"};
  return style;
}

void gemma2(ConfigReader& reader, InventoryBuilder& g) {
  write_dense(reader, g, gemma2_style(reader));
}

void gemma3(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = gemma2_style(reader);
  style.qk_norm = QkNorm::kHead;
  write_dense(reader, g, style);
}

void vaultgemma(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_bias(reader);
  style.scaled_embedding = true;
  style.norms = {"input_layernorm", "pre_feedforward_layernorm"};
  write_dense(reader, g, style);
}

void arcee(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_and_mlp_bias(reader);
  style.mlp = MlpKind::kPlain;
  write_dense(reader, g, style);
}

void apertus(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_bias(reader);
  style.mlp = MlpKind::kPlain;
  style.qk_norm = QkNorm::kHead;
  style.norms = {"attention_layernorm", "feedforward_layernorm"};
  const bool learned = reader.text("hidden_act") == "xielu";
  Decoder d(reader, g, style);
  write_decoder(d, [&](std::int64_t) {
    d.attention();
    d.mlp();
    if (learned) {
      g.tensor("mlp.act_fn.alpha_p", {1});
      g.tensor("mlp.act_fn.alpha_n", {1});
      g.buffer("mlp.act_fn.beta", {}, /*persistent=*/true);
      g.buffer("mlp.act_fn.eps", {}, /*persistent=*/true);
    }
    d.norms();
  });
}

// One norm before attention and MLP, which run side by side.
void cohere(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_bias(reader);
  style.norms = {"input_layernorm"};
  const bool norms = reader.flag("use_qk_norm");
  Decoder d(reader, g, style);
  write_decoder(d, [&](std::int64_t) {
    d.attention();
    g.role(ParameterRole::kNorm);
    if (norms) g.tensor("self_attn.q_norm.weight", {d.heads, d.head_dim});
    if (norms) g.tensor("self_attn.k_norm.weight", {d.kv_heads, d.head_dim});
    d.mlp();
    d.norms();
  });
}

void cohere2(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_bias(reader);
  style.norms = {"input_layernorm"};
  write_dense(reader, g, style);
}

void ernie(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style;
  style.qkv_bias = style.out_bias = style.mlp_bias = reader.flag("use_bias");
  write_dense(reader, g, style);
}

void exaone4(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style;
  style.qk_norm = QkNorm::kHead;
  style.norms = {"post_attention_layernorm", "post_feedforward_layernorm"};
  write_dense(reader, g, style);
}

DecoderStyle glm_style(ConfigReader& reader) {
  DecoderStyle style;
  style.qkv_bias = reader.flag("attention_bias");
  style.mlp = MlpKind::kFusedGated;
  return style;
}

void glm(ConfigReader& reader, InventoryBuilder& g) { write_dense(reader, g, glm_style(reader)); }

void glm4(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = glm_style(reader);
  style.norms = {"input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm",
                 "post_mlp_layernorm"};
  write_dense(reader, g, style);
}

void helium(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_and_mlp_bias(reader);
  style.out_bias = false;
  style.square_out = true;
  write_dense(reader, g, style);
}

void hunyuan(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_bias(reader);
  style.qk_norm = QkNorm::kHead;
  style.q_norm = "self_attn.query_layernorm";
  style.k_norm = "self_attn.key_layernorm";
  write_dense(reader, g, style);
}

void nemotron(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_and_mlp_bias(reader);
  style.mlp = MlpKind::kPlain;
  style.norm_bias = true;
  write_dense(reader, g, style);
}

void olmo(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_bias(reader);
  style.norm_weights = false;
  write_dense(reader, g, style);
}

void olmo2(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_bias(reader);
  style.qk_norm = QkNorm::kWidth;
  style.norms = {"post_attention_layernorm", "post_feedforward_layernorm"};
  write_dense(reader, g, style);
}

void persimmon(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style;
  style.norm_bias = style.mlp_bias = true;
  style.mlp = MlpKind::kPlain;
  style.up = "mlp.dense_h_to_4h";
  style.down = "mlp.dense_4h_to_h";
  style.final_norm = "model.final_layernorm";
  const bool norms = reader.flag("qk_layernorm");
  Decoder d(reader, g, style);
  write_decoder(d, [&](std::int64_t) {
    g.role(ParameterRole::kAttention);
    g.linear("self_attn.query_key_value", checked_mul(3, d.width), d.width, true);
    g.linear("self_attn.dense", d.width, d.width, true);
    if (norms) g.norm("self_attn.q_layernorm", d.head_dim, true);
    if (norms) g.norm("self_attn.k_layernorm", d.head_dim, true);
    d.mlp();
    d.norms();
  });
}

void phi(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style;
  style.qkv_bias = style.out_bias = style.mlp_bias = style.norm_bias = style.head_bias = true;
  style.mlp = MlpKind::kPlain;
  style.out = "self_attn.dense";
  style.up = "mlp.fc1";
  style.down = "mlp.fc2";
  style.norms = {"input_layernorm"};
  style.final_norm = "model.final_layernorm";
  const bool norms = reader.flag("qk_layernorm");
  Decoder d(reader, g, style);
  write_decoder(d, [&](std::int64_t) {
    d.attention();
    if (norms) g.norm("self_attn.q_layernorm", d.head_dim, true);
    if (norms) g.norm("self_attn.k_layernorm", d.head_dim, true);
    d.mlp();
    d.norms();
  });
}

void phi3(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style;
  style.fused_qkv = true;
  style.mlp = MlpKind::kFusedGated;
  write_dense(reader, g, style);
}

void seed_oss(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = attention_and_mlp_bias(reader);
  style.out_bias = reader.flag("attention_out_bias");
  write_dense(reader, g, style);
}

// Each head has a norm of its own.
void norms_per_head(InventoryBuilder& g, std::string_view name, std::int64_t heads,
                    std::int64_t head_dim) {
  for (std::int64_t i = 0; i < heads; ++i) {
    g.norm(fmt::format("{}.norms.{}", name, i), head_dim);
  }
}

void stablelm(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style;
  style.qkv_bias = reader.flag("use_qkv_bias");
  style.norm_bias = true;
  if (reader.flag("use_parallel_residual")) style.norms = {"input_layernorm"};
  const bool norms = reader.flag("qk_layernorm");
  Decoder d(reader, g, style);
  constexpr std::int64_t kMostNorms = 100'000;  // tensors: no published model has a tenth of them
  if (norms && checked_mul(d.heads, d.layers) > kMostNorms) {
    reader.refuse_key("num_attention_heads",
                      fmt::format("{} heads in {} layers with a norm each, expected at most {}",
                                  d.heads, d.layers, kMostNorms));
    return;
  }
  write_decoder(d, [&](std::int64_t) {
    d.attention();
    if (norms) norms_per_head(g, "self_attn.q_layernorm", d.heads, d.head_dim);
    if (norms) norms_per_head(g, "self_attn.k_layernorm", d.kv_heads, d.head_dim);
    d.mlp();
    d.norms();
  });
}

void starcoder2(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style;
  style.qkv_bias = style.out_bias = style.mlp_bias = reader.flag("use_bias");
  style.norm_bias = true;
  style.mlp = MlpKind::kPlain;
  style.up = "mlp.c_fc";
  style.down = "mlp.c_proj";
  write_dense(reader, g, style);
}

constexpr std::array<InventoryFamily, 33> kDenseDecoders = {{
    {"apertus", apertus, "ApertusForCausalLM"},
    {"arcee", arcee, "ArceeForCausalLM"},
    {"cohere", cohere, "CohereForCausalLM"},
    {"cohere2", cohere2, "Cohere2ForCausalLM"},
    {"ernie4_5", ernie, "Ernie4_5ForCausalLM"},
    {"exaone4", exaone4, "Exaone4ForCausalLM"},
    {"gemma", gemma, "GemmaForCausalLM"},
    {"gemma2", gemma2, "Gemma2ForCausalLM"},
    {"gemma3_text", gemma3, "Gemma3ForCausalLM"},
    {"glm", glm, "GlmForCausalLM"},
    {"glm4", glm4, "Glm4ForCausalLM"},
    {"granite", llama, "GraniteForCausalLM"},
    {"helium", helium, "HeliumForCausalLM"},
    {"hunyuan_v1_dense", hunyuan, "HunYuanDenseV1ForCausalLM"},
    {"internlm3", llama, "LlamaForCausalLM"},
    {"llama", llama, "LlamaForCausalLM"},
    {"ministral", mistral, "MinistralForCausalLM"},
    {"ministral3", mistral, "Ministral3ForCausalLM"},
    {"mistral", mistral, "MistralForCausalLM"},
    {"nemotron", nemotron, "NemotronForCausalLM"},
    {"olmo", olmo, "OlmoForCausalLM"},
    {"olmo2", olmo2, "Olmo2ForCausalLM"},
    {"olmo3", olmo2, "Olmo3ForCausalLM"},
    {"persimmon", persimmon, "PersimmonForCausalLM"},
    {"phi", phi, "PhiForCausalLM"},
    {"phi3", phi3, "Phi3ForCausalLM"},
    {"qwen2", qwen2, "Qwen2ForCausalLM"},
    {"qwen3", qwen3, "Qwen3ForCausalLM"},
    {"seed_oss", seed_oss, "SeedOssForCausalLM"},
    {"smollm3", llama, "SmolLM3ForCausalLM"},
    {"stablelm", stablelm, "StableLmForCausalLM"},
    {"starcoder2", starcoder2, "Starcoder2ForCausalLM"},
    {"vaultgemma", vaultgemma, "VaultGemmaForCausalLM"},
}};

}  // namespace

const InventoryFamily* find_dense_decoder(std::string_view model_type) {
  return find_in(kDenseDecoders, model_type);
}

}  // namespace plimsoll::formats
