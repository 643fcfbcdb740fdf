// Decoders with module names of their own: GPT-2 and its relatives, Bloom, Falcon, NeoX, OPT, and the
// decoders that were cut from fairseq's BART (BioGPT, XGLM).
#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/inventory/decoder.hpp"
#include "plimsoll/formats/inventory/families.hpp"
#include "plimsoll/formats/rope_parameters.hpp"

namespace plimsoll::formats {
namespace {

// --- GPT-2 style: transformer.wte, transformer.h.0., transformer.ln_f

struct Gpt {
  std::int64_t vocabulary = 1;    // V
  std::int64_t width = 1;         // D
  std::int64_t layers = 1;        // L
  std::int64_t heads = 1;         // N
  std::int64_t feed_forward = 1;  // F
};

void check_heads(ConfigReader& reader, std::string_view key, std::int64_t heads,
                 std::int64_t width) {
  if (width % heads == 0) return;
  reader.refuse_key(key, fmt::format("{} does not divide width {}", heads, width));
}

Gpt read_gpt(ConfigReader& reader) {
  Gpt s;
  s.vocabulary = reader.size("vocab_size");
  s.width = reader.size("n_embd");
  s.layers = reader.layers("n_layer");
  s.heads = reader.size("n_head");
  s.feed_forward = reader.size_or("n_inner", checked_mul(4, s.width));
  check_heads(reader, "n_head", s.heads, s.width);
  return s;
}

void write_head(ConfigReader& reader, InventoryBuilder& g, std::string_view embedding,
                std::string_view head, std::int64_t vocabulary, std::int64_t width, bool bias) {
  g.enter("");
  g.role(ParameterRole::kHead);
  if (reader.noted_flag("tie_word_embeddings")) {
    g.tie(fmt::format("{}.weight", embedding), fmt::format("{}.weight", head));
    if (bias) g.tensor(fmt::format("{}.bias", head), {vocabulary});
  } else {
    g.linear(head, vocabulary, width, bias);
  }
}

// Linears that are stored [in, out].
void transposed(InventoryBuilder& g, std::string_view name, std::int64_t in, std::int64_t out) {
  g.tensor(fmt::format("{}.weight", name), {in, out});
  g.tensor(fmt::format("{}.bias", name), {out});
}

void gpt2(ConfigReader& reader, InventoryBuilder& g) {
  const Gpt s = read_gpt(reader);
  if (reader.flag("add_cross_attention")) {
    reader.refuse_key("add_cross_attention",
                      "true, expected false: cross-attention is not counted");
  }
  g.enter("transformer.");
  g.embedding("wte", s.vocabulary, s.width, ParameterRole::kTokenEmbedding);
  g.embedding("wpe", reader.size("n_positions"), s.width, ParameterRole::kPositionEmbedding);
  for (std::int64_t i = 0; i < s.layers; ++i) {
    g.enter(fmt::format("transformer.h.{}.", i), i);
    g.norm("ln_1", s.width, true);
    g.role(ParameterRole::kAttention);
    transposed(g, "attn.c_attn", s.width, checked_mul(3, s.width));
    transposed(g, "attn.c_proj", s.width, s.width);
    g.norm("ln_2", s.width, true);
    g.role(ParameterRole::kMlp);
    transposed(g, "mlp.c_fc", s.width, s.feed_forward);
    transposed(g, "mlp.c_proj", s.feed_forward, s.width);
  }
  g.enter("transformer.");
  g.norm("ln_f", s.width, true);
  write_head(reader, g, "transformer.wte", "lm_head", s.vocabulary, s.width, false);
}

void gpt_bigcode(ConfigReader& reader, InventoryBuilder& g) {
  const Gpt s = read_gpt(reader);
  const std::int64_t positions = reader.size("n_positions");
  const std::int64_t keys = reader.flag("multi_query") ? s.width / s.heads : s.width;
  g.enter("transformer.");
  g.embedding("wte", s.vocabulary, s.width, ParameterRole::kTokenEmbedding);
  g.embedding("wpe", positions, s.width, ParameterRole::kPositionEmbedding);
  for (std::int64_t i = 0; i < s.layers; ++i) {
    g.enter(fmt::format("transformer.h.{}.", i), i);
    g.norm("ln_1", s.width, true);
    g.role(ParameterRole::kAttention);
    g.linear("attn.c_attn", checked_add(s.width, checked_mul(2, keys)), s.width, true);
    g.linear("attn.c_proj", s.width, s.width, true);
    g.norm("ln_2", s.width, true);
    g.role(ParameterRole::kMlp);
    g.linear("mlp.c_fc", s.feed_forward, s.width, true);
    g.linear("mlp.c_proj", s.width, s.feed_forward, true);
  }
  g.enter("transformer.");
  g.norm("ln_f", s.width, true);
  if (positions <= (std::int64_t{1} << 20)) g.buffer("bias", {positions, positions});
  write_head(reader, g, "transformer.wte", "lm_head", s.vocabulary, s.width, false);
}

void gpt_neo(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t width = reader.size("hidden_size");
  const std::int64_t layers = reader.layers("num_layers");
  const std::int64_t positions = reader.size("max_position_embeddings");
  const std::int64_t inner = reader.size_or("intermediate_size", checked_mul(4, width));
  check_heads(reader, "num_heads", reader.size("num_heads"), width);
  g.enter("transformer.");
  g.embedding("wte", vocabulary, width, ParameterRole::kTokenEmbedding);
  g.embedding("wpe", positions, width, ParameterRole::kPositionEmbedding);
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("transformer.h.{}.", i), i);
    g.norm("ln_1", width, true);
    g.role(ParameterRole::kAttention);
    for (const char* name : {"k_proj", "v_proj", "q_proj"}) {
      g.linear(fmt::format("attn.attention.{}", name), width, width);
    }
    g.linear("attn.attention.out_proj", width, width, true);
    g.buffer("attn.attention.bias", {1, 1, positions, positions});
    g.norm("ln_2", width, true);
    g.role(ParameterRole::kMlp);
    g.linear("mlp.c_fc", inner, width, true);
    g.linear("mlp.c_proj", width, inner, true);
  }
  g.enter("transformer.");
  g.norm("ln_f", width, true);
  write_head(reader, g, "transformer.wte", "lm_head", vocabulary, width, false);
}

// GPT-J and CodeGen: one norm before attention and MLP, a head with bias.
void parallel_gpt(ConfigReader& reader, InventoryBuilder& g, bool fused) {
  const Gpt s = read_gpt(reader);
  const std::int64_t positions = reader.size("n_positions");
  const std::int64_t turning = reader.has("rotary_dim") ? reader.size("rotary_dim") : s.width;
  g.enter("transformer.");
  g.embedding("wte", s.vocabulary, s.width, ParameterRole::kTokenEmbedding);
  for (std::int64_t i = 0; i < s.layers; ++i) {
    g.enter(fmt::format("transformer.h.{}.", i), i);
    g.norm("ln_1", s.width, true);
    g.role(ParameterRole::kAttention);
    if (fused) {
      g.linear("attn.qkv_proj", checked_mul(3, s.width), s.width);
    } else {
      for (const char* name : {"k_proj", "v_proj", "q_proj"}) {
        g.linear(fmt::format("attn.{}", name), s.width, s.width);
      }
    }
    g.linear("attn.out_proj", s.width, s.width);
    g.role(ParameterRole::kMlp);
    g.linear("mlp.fc_in", s.feed_forward, s.width, true);
    g.linear("mlp.fc_out", s.width, s.feed_forward, true);
  }
  g.enter("transformer.");
  g.norm("ln_f", s.width, true);
  g.buffer("rotary_emb.embed_positions", {positions, turning});
  write_head(reader, g, "transformer.wte", "lm_head", s.vocabulary, s.width, true);
}

void gptj(ConfigReader& reader, InventoryBuilder& g) { parallel_gpt(reader, g, /*fused=*/false); }
void codegen(ConfigReader& reader, InventoryBuilder& g) { parallel_gpt(reader, g, /*fused=*/true); }

// --- one linear for queries, keys and values, dense_h_to_4h and dense_4h_to_h

void wide_mlp(InventoryBuilder& g, std::int64_t width, std::int64_t inner, bool bias) {
  g.role(ParameterRole::kMlp);
  g.linear("mlp.dense_h_to_4h", inner, width, bias);
  g.linear("mlp.dense_4h_to_h", width, inner, bias);
}

void bloom(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t width = reader.size("hidden_size");
  const std::int64_t layers = reader.layers("n_layer");
  check_heads(reader, "n_head", reader.size("n_head"), width);
  g.enter("transformer.");
  g.embedding("word_embeddings", vocabulary, width, ParameterRole::kTokenEmbedding);
  g.norm("word_embeddings_layernorm", width, true);
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("transformer.h.{}.", i), i);
    g.norm("input_layernorm", width, true);
    g.role(ParameterRole::kAttention);
    g.linear("self_attention.query_key_value", checked_mul(3, width), width, true);
    g.linear("self_attention.dense", width, width, true);
    g.norm("post_attention_layernorm", width, true);
    wide_mlp(g, width, checked_mul(4, width), true);
  }
  g.enter("transformer.");
  g.norm("ln_f", width, true);
  write_head(reader, g, "transformer.word_embeddings", "lm_head", vocabulary, width, false);
}

// Rows of the fused linear: all heads, one key/value head, or groups.
std::int64_t falcon_rows(ConfigReader& reader, std::int64_t width, std::int64_t heads) {
  const std::int64_t head_dim = std::max<std::int64_t>(1, width / heads);
  if (reader.flag("new_decoder_architecture")) {
    const std::int64_t kv_heads = reader.derived_size("num_kv_heads");
    return checked_mul(checked_add(checked_mul(2, kv_heads), heads), head_dim);
  }
  return reader.flag("multi_query") ? checked_add(width, 2 * head_dim) : checked_mul(3, width);
}

void falcon_norms(ConfigReader& reader, InventoryBuilder& g, std::int64_t width) {
  const bool grouped = reader.flag("new_decoder_architecture");
  const std::int64_t parallel = reader.has("num_ln_in_parallel_attn")
                                    ? reader.count("num_ln_in_parallel_attn")
                                : grouped ? 2
                                          : 1;
  if (!reader.flag("parallel_attn")) {
    g.norm("post_attention_layernorm", width, true);
    g.norm("input_layernorm", width, true);
  } else if (parallel == 2) {
    g.norm("ln_attn", width, true);
    g.norm("ln_mlp", width, true);
  } else {
    g.norm("input_layernorm", width, true);
  }
}

void falcon(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t width = reader.size("hidden_size");
  const std::int64_t layers = reader.layers("num_hidden_layers");
  const std::int64_t heads = reader.size("num_attention_heads");
  const std::int64_t inner = reader.derived_size("ffn_hidden_size");
  const bool bias = reader.flag("bias");
  const std::int64_t rows = falcon_rows(reader, width, heads);
  check_heads(reader, "num_attention_heads", heads, width);
  g.enter("transformer.");
  g.embedding("word_embeddings", vocabulary, width, ParameterRole::kTokenEmbedding);
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("transformer.h.{}.", i), i);
    g.role(ParameterRole::kAttention);
    g.linear("self_attention.query_key_value", rows, width, bias);
    g.linear("self_attention.dense", width, width, bias);
    wide_mlp(g, width, inner, bias);
    falcon_norms(reader, g, width);
  }
  g.enter("transformer.");
  g.norm("ln_f", width, true);
  g.buffer("rotary_emb.inv_freq", {(width / heads + 1) / 2});
  g.buffer("rotary_emb.original_inv_freq", {(width / heads + 1) / 2});
  write_head(reader, g, "transformer.word_embeddings", "lm_head", vocabulary, width, false);
}

void neox_rotary(ConfigReader& reader, InventoryBuilder& g, std::int64_t head_dim) {
  const auto* settings = reader.complete("rope_parameters");
  const double partial = settings == nullptr ? 1 : rope_settings(*settings).partial;
  const double elements = static_cast<double>(head_dim) * partial;
  const auto turning = elements < 1e9 ? static_cast<std::int64_t>(elements) : 0;
  g.buffer("rotary_emb.inv_freq", {(turning + 1) / 2});
  g.buffer("rotary_emb.original_inv_freq", {(turning + 1) / 2});
}

void gpt_neox(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t width = reader.size("hidden_size");
  const std::int64_t layers = reader.layers("num_hidden_layers");
  const std::int64_t heads = reader.size("num_attention_heads");
  const std::int64_t inner = reader.size("intermediate_size");
  const bool bias = reader.flag("attention_bias");
  check_heads(reader, "num_attention_heads", heads, width);
  g.enter("gpt_neox.");
  g.embedding("embed_in", vocabulary, width, ParameterRole::kTokenEmbedding);
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("gpt_neox.layers.{}.", i), i);
    g.norm("input_layernorm", width, true);
    g.norm("post_attention_layernorm", width, true);
    g.role(ParameterRole::kAttention);
    g.linear("attention.query_key_value", checked_mul(3, width), width, bias);
    g.linear("attention.dense", width, width, bias);
    wide_mlp(g, width, inner, true);
  }
  g.enter("gpt_neox.");
  g.norm("final_layer_norm", width, true);
  neox_rotary(reader, g, width / heads);
  write_head(reader, g, "gpt_neox.embed_in", "lm_head", vocabulary, width, false);
}

// --- BART's decoder layer: k_proj, v_proj, q_proj, out_proj, fc1, fc2

void bart_layer(InventoryBuilder& g, std::int64_t width, std::int64_t inner, bool bias) {
  g.role(ParameterRole::kAttention);
  for (const char* name : {"k_proj", "v_proj", "q_proj", "out_proj"}) {
    g.linear(fmt::format("self_attn.{}", name), width, width, bias);
  }
  g.role(ParameterRole::kMlp);
  g.linear("fc1", inner, width, bias);
  g.linear("fc2", width, inner, bias);
}

void opt(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t width = reader.size("hidden_size");
  const std::int64_t layers = reader.layers("num_hidden_layers");
  const std::int64_t inner = reader.size("ffn_dim");
  const std::int64_t embedded = reader.derived_size("word_embed_proj_dim");
  const bool bias = reader.flag("enable_bias");
  const bool affine = reader.flag("layer_norm_elementwise_affine");
  const bool last = reader.flag("do_layer_norm_before") && !reader.flag("_remove_final_layer_norm");
  check_heads(reader, "num_attention_heads", reader.size("num_attention_heads"), width);
  const std::string decoder = "model.decoder.";
  g.enter(decoder);
  g.embedding("embed_tokens", vocabulary, embedded, ParameterRole::kTokenEmbedding);
  // Two rows more than positions: positions are counted from 2.
  g.embedding("embed_positions", checked_add(reader.size("max_position_embeddings"), 2), width,
              ParameterRole::kPositionEmbedding);
  if (embedded != width) {
    g.role(ParameterRole::kOtherEmbedding);
    g.linear("project_out", embedded, width);
    g.linear("project_in", width, embedded);
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("{}layers.{}.", decoder, i), i);
    bart_layer(g, width, inner, bias);
    if (affine) g.norm("self_attn_layer_norm", width, true);
    if (affine) g.norm("final_layer_norm", width, true);
  }
  g.enter(decoder);
  if (last && affine) g.norm("final_layer_norm", width, true);
  write_head(reader, g, "model.decoder.embed_tokens", "lm_head", vocabulary, embedded, false);
}

void biogpt(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t width = reader.size("hidden_size");
  const std::int64_t layers = reader.layers("num_hidden_layers");
  const std::int64_t inner = reader.size("intermediate_size");
  check_heads(reader, "num_attention_heads", reader.size("num_attention_heads"), width);
  g.enter("biogpt.");
  g.embedding("embed_tokens", vocabulary, width, ParameterRole::kTokenEmbedding);
  g.embedding("embed_positions", checked_add(reader.size("max_position_embeddings"), 2), width,
              ParameterRole::kPositionEmbedding);
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("biogpt.layers.{}.", i), i);
    bart_layer(g, width, inner, true);
    g.norm("self_attn_layer_norm", width, true);
    g.norm("final_layer_norm", width, true);
  }
  g.enter("biogpt.");
  g.norm("layer_norm", width, true);
  write_head(reader, g, "biogpt.embed_tokens", "output_projection", vocabulary, width, false);
}

void xglm(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t width = reader.size("d_model");
  const std::int64_t layers = reader.layers("num_layers");
  const std::int64_t inner = reader.size("ffn_dim");
  check_heads(reader, "attention_heads", reader.size("attention_heads"), width);
  if (reader.flag("add_cross_attention")) {
    reader.refuse_key("add_cross_attention",
                      "true, expected false: cross-attention is not counted");
  }
  g.enter("model.");
  g.embedding("embed_tokens", vocabulary, width, ParameterRole::kTokenEmbedding);
  g.buffer("embed_positions.weights",
           {checked_add(reader.size("max_position_embeddings"), 2), width});
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("model.layers.{}.", i), i);
    bart_layer(g, width, inner, true);
    g.norm("self_attn_layer_norm", width, true);
    g.norm("final_layer_norm", width, true);
  }
  g.enter("model.");
  g.norm("layer_norm", width, true);
  write_head(reader, g, "model.embed_tokens", "lm_head", vocabulary, width, false);
}

constexpr std::array<InventoryFamily, 11> kGpts = {{
    {"biogpt", biogpt, "BioGptForCausalLM"},
    {"bloom", bloom, "BloomForCausalLM"},
    {"codegen", codegen, "CodeGenForCausalLM"},
    {"falcon", falcon, "FalconForCausalLM"},
    {"gpt2", gpt2, "GPT2LMHeadModel"},
    {"gpt_bigcode", gpt_bigcode, "GPTBigCodeForCausalLM"},
    {"gpt_neo", gpt_neo, "GPTNeoForCausalLM"},
    {"gpt_neox", gpt_neox, "GPTNeoXForCausalLM"},
    {"gptj", gptj, "GPTJForCausalLM"},
    {"opt", opt, "OPTForCausalLM"},
    {"xglm", xglm, "XGLMForCausalLM"},
}};

}  // namespace

const InventoryFamily* find_gpt(std::string_view model_type) { return find_in(kGpts, model_type); }

}  // namespace plimsoll::formats
