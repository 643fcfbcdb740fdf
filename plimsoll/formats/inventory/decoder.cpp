#include "plimsoll/formats/inventory/decoder.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/rope_parameters.hpp"

namespace plimsoll::formats {

Decoder::Decoder(ConfigReader& config, InventoryBuilder& builder, DecoderStyle decoder_style,
                 std::string_view feed_forward_key)
    : reader(config), g(builder), style(std::move(decoder_style)) {
  vocabulary = reader.size("vocab_size");
  width = reader.size("hidden_size");
  layers = reader.layers("num_hidden_layers");
  heads = reader.size("num_attention_heads");
  kv_heads = reader.has("num_key_value_heads") ? reader.size("num_key_value_heads") : heads;
  if (reader.has("head_dim")) {
    head_dim = reader.derived_size("head_dim");
  } else {
    head_dim = std::max<std::int64_t>(1, width / heads);
    if (width % heads != 0) {
      reader.refuse_key("num_attention_heads",
                        fmt::format("{} does not divide hidden_size {}", heads, width),
                        "give head_dim when heads * head_dim is not the width");
    }
  }
  if (heads % kv_heads != 0) {
    reader.refuse_key("num_key_value_heads",
                      fmt::format("{} does not divide heads {}", kv_heads, heads));
  }
  if (!feed_forward_key.empty()) feed_forward = reader.size(feed_forward_key);
  tied_ = reader.noted_flag("tie_word_embeddings");
}

void Decoder::begin() {
  g.enter("model.");
  g.embedding("embed_tokens", vocabulary, width, ParameterRole::kTokenEmbedding);
  if (style.scaled_embedding) g.buffer("embed_tokens.embed_scale", {});
}

void Decoder::enter(std::int64_t layer) { g.enter(fmt::format("model.layers.{}.", layer), layer); }

void Decoder::attention() {
  const std::int64_t queries = checked_mul(heads, head_dim);
  const std::int64_t keys = checked_mul(kv_heads, head_dim);
  g.role(ParameterRole::kAttention);
  if (style.fused_qkv) {
    const std::int64_t rows = checked_add(queries, checked_mul(2, keys));
    g.linear("self_attn.qkv_proj", rows, width, style.qkv_bias);
  } else {
    g.linear("self_attn.q_proj", queries, width, style.qkv_bias);
    g.linear("self_attn.k_proj", keys, width, style.qkv_bias);
    g.linear("self_attn.v_proj", keys, width, style.qkv_bias);
  }
  g.linear(style.out, width, style.square_out ? width : queries, style.out_bias);
  query_key_norms();
}

void Decoder::query_key_norms() {
  if (style.qk_norm == QkNorm::kNone) return;
  const bool wide = style.qk_norm == QkNorm::kWidth;
  g.norm(style.q_norm, wide ? checked_mul(heads, head_dim) : head_dim);
  g.norm(style.k_norm, wide ? checked_mul(kv_heads, head_dim) : head_dim);
}

void Decoder::mlp() {
  g.role(ParameterRole::kMlp);
  if (style.mlp == MlpKind::kGated) {
    g.linear("mlp.gate_proj", feed_forward, width, style.mlp_bias);
  } else if (style.mlp == MlpKind::kFusedGated) {
    g.linear("mlp.gate_up_proj", checked_mul(2, feed_forward), width, style.mlp_bias);
  }
  if (style.mlp != MlpKind::kFusedGated) g.linear(style.up, feed_forward, width, style.mlp_bias);
  g.linear(style.down, width, feed_forward, style.mlp_bias);
}

void Decoder::gated_mlp(std::string_view name, std::int64_t inner, bool bias, ParameterRole role) {
  g.role(role);
  g.linear(fmt::format("{}.gate_proj", name), inner, width, bias);
  g.linear(fmt::format("{}.up_proj", name), inner, width, bias);
  g.linear(fmt::format("{}.down_proj", name), width, inner, bias);
}

void Decoder::experts(std::string_view name, std::int64_t count, std::int64_t inner,
                      std::int64_t used) {
  g.experts(fmt::format("{}.gate_up_proj", name), {count, checked_mul(2, inner), width}, used);
  g.experts(fmt::format("{}.down_proj", name), {count, width, inner}, used);
}

void Decoder::router(std::string_view name, std::int64_t count, bool bias) {
  g.role(ParameterRole::kRouter);
  g.linear(name, count, width, bias);
}

void Decoder::norms() {
  if (!style.norm_weights) return;
  for (const std::string_view norm : style.norms) g.norm(norm, width, style.norm_bias);
}

std::int64_t Decoder::turning(std::string_view layer_type) const {
  const nlohmann::json* settings = reader.complete("rope_parameters");
  const double partial = settings == nullptr ? 1 : rope_settings(*settings, layer_type).partial;
  const double elements = static_cast<double>(head_dim) * partial;
  return elements >= 1 && elements < 1e9 ? static_cast<std::int64_t>(elements) : 0;
}

void Decoder::rotary(std::string_view module, std::int64_t elements) {
  g.buffer(fmt::format("{}inv_freq", module), {(elements + 1) / 2});
  g.buffer(fmt::format("{}original_inv_freq", module), {(elements + 1) / 2});
}

bool Decoder::has_layers_of(std::string_view kind) const {
  const nlohmann::json* types = reader.complete("layer_types");
  return types != nullptr &&
         std::find(types->begin(), types->end(), nlohmann::json(kind)) != types->end();
}

// One table, or one for each kind of layer that there is.
void Decoder::rotary_tables() {
  const nlohmann::json* settings = reader.complete("rope_parameters");
  if (!style.rotary_buffers || settings == nullptr) return;
  bool nested = false;
  for (const char* kind : {"full_attention", "sliding_attention"}) {
    if (!settings->is_object() || !settings->contains(kind)) continue;
    nested = true;
    if (has_layers_of(kind)) rotary(fmt::format("rotary_emb.{}_", kind), turning(kind));
  }
  if (!nested) rotary("rotary_emb.", turning());
}

void Decoder::finish() {
  g.enter("");
  if (style.norm_weights) g.norm(style.final_norm, width, style.norm_bias);
  g.enter("model.");
  rotary_tables();
  g.enter("");
  g.role(ParameterRole::kHead);
  if (tied_ && style.tied) {
    g.tie("model.embed_tokens.weight", "lm_head.weight");
    if (style.head_bias) g.tensor("lm_head.bias", {vocabulary});
  } else {
    g.linear("lm_head", vocabulary, width, style.head_bias);
  }
}

}  // namespace plimsoll::formats
