#include "plimsoll/formats/class_rules.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace plimsoll::formats {
namespace {

using nlohmann::json;
using Rule = void (*)(ClassKeys&);

// Only where it is whole: the reader complains about the rest.
void set_quotient(ClassKeys& keys, std::string_view key, std::string_view whole,
                  std::string_view part) {
  const auto dividend = keys.size(whole);
  const auto divisor = keys.size(part);
  if (dividend && divisor && *dividend % *divisor == 0) keys.set(key, *dividend / *divisor);
}

void set_product(ClassKeys& keys, std::string_view key, std::string_view a, std::string_view b) {
  const auto first = keys.size(a);
  const auto second = keys.size(b);
  std::int64_t product = 0;
  if (first && second && !__builtin_mul_overflow(*first, *second, &product)) keys.set(key, product);
}

// A sixteenth of the width, rounded up, where the file says "auto".
void set_auto_rank(ClassKeys& keys, std::string_view key) {
  const auto width = keys.size("hidden_size");
  if (keys.is_text(key, "auto") && width) keys.set(key, (*width + 15) / 16);
}

// Multi-head latent attention: only the rotary part of a head is what rotary positions see.
void latent_attention(ClassKeys& keys) {
  const auto plain = keys.size("qk_nope_head_dim");
  const auto rotary = keys.size("qk_rope_head_dim");
  if (!plain || !rotary) return;
  keys.set("qk_head_dim", *plain + *rotary);
  keys.set("head_dim", *rotary);
}

void kimi_linear(ClassKeys& keys) {
  latent_attention(keys);
  const json* home = keys.find("linear_attn_config");
  if (home == nullptr || !home->is_object()) return;
  const std::array<std::pair<const char*, const char*>, 3> names = {
      {{"head_dim", "linear_head_dim"},
       {"num_heads", "linear_num_heads"},
       {"short_conv_kernel_size", "linear_conv_kernel_dim"}}};
  const json settings = *home;
  for (const auto& [inner, outer] : names) {
    if (settings.contains(inner)) keys.set(outer, settings.at(inner));
  }
}

void minicpm3(ClassKeys& keys) {
  if (!keys.has("v_head_dim")) {
    set_quotient(keys, "v_head_dim", "hidden_size", "num_attention_heads");
  }
  latent_attention(keys);
}

void fixed_head_dim(ClassKeys& keys) {
  set_quotient(keys, "head_dim", "hidden_size", "num_attention_heads");
}

void falcon(ClassKeys& keys) {
  keys.set_if_absent("num_kv_heads", keys.find("num_attention_heads"));
  const auto width = keys.size("hidden_size");
  if (!keys.has("ffn_hidden_size") && width) keys.set("ffn_hidden_size", 4 * *width);
}

void mamba(ClassKeys& keys) {
  set_product(keys, "intermediate_size", "expand", "hidden_size");
  set_auto_rank(keys, "time_step_rank");
}

void mamba2(ClassKeys& keys) { set_auto_rank(keys, "time_step_rank"); }

void jamba(ClassKeys& keys) { set_auto_rank(keys, "mamba_dt_rank"); }

void hybrid_mamba(ClassKeys& keys) {
  if (!keys.is_text("mamba_d_head", "auto")) return;
  const auto expand = keys.size("mamba_expand");
  const auto width = keys.size("hidden_size");
  const auto heads = keys.size("mamba_n_heads");
  std::int64_t inner = 0;
  if (!expand || !width || !heads || __builtin_mul_overflow(*expand, *width, &inner)) return;
  if (inner >= *heads) keys.set("mamba_d_head", inner / *heads);
}

void gemma(ClassKeys& keys) {
  if (keys.is_text("hidden_act", "gelu")) keys.set("hidden_act", "gelu_pytorch_tanh");
}

void gemma3(ClassKeys& keys) {
  const auto window = keys.size("sliding_window");
  if (keys.flag("use_bidirectional_attention") && window) {
    keys.set("sliding_window", *window / 2 + 1);
  }
}

void opt(ClassKeys& keys) { keys.set_if_absent("word_embed_proj_dim", keys.find("hidden_size")); }

void window_is_optional(ClassKeys& keys) {
  if (!keys.flag("use_sliding_window")) keys.set("sliding_window", nullptr);
}

void qwen2_moe(ClassKeys& keys) {
  if (!keys.flag("use_sliding_window")) keys.set("sliding_window", 0);
  if (!keys.has("mlp_only_layers")) keys.set("mlp_only_layers", json::array());
}

void qwen3_moe(ClassKeys& keys) {
  window_is_optional(keys);
  if (!keys.has("mlp_only_layers")) keys.set("mlp_only_layers", json::array());
}

void qwen3_next(ClassKeys& keys) {
  if (!keys.has("mlp_only_layers")) keys.set("mlp_only_layers", json::array());
}

void recurrent_gemma(ClassKeys& keys) {
  keys.set_if_absent("lru_width", keys.find("hidden_size"));
  fixed_head_dim(keys);
}

void rwkv(ClassKeys& keys) {
  keys.set_if_absent("attention_hidden_size", keys.find("hidden_size"));
  const auto width = keys.size("hidden_size");
  if (!keys.has("intermediate_size") && width) keys.set("intermediate_size", 4 * *width);
}

void swin(ClassKeys& keys) {
  const json* depths = keys.find("depths");
  const auto width = keys.size("embed_dim");
  if (depths == nullptr || !depths->is_array() || depths->empty() || depths->size() > 8) return;
  keys.set("num_layers", depths->size());
  const auto doublings = static_cast<std::int64_t>(keys.find("depths")->size()) - 1;
  std::int64_t last = 0;
  if (width && !__builtin_mul_overflow(*width, std::int64_t{1} << doublings, &last)) {
    keys.set("hidden_size", last);
  }
}

void t5(ClassKeys& keys) {
  keys.set_if_absent("num_decoder_layers", keys.find("num_layers"));
  // The class ties whatever a file says; checkpoints that say false hold a head of their own.
  if (!keys.has("tie_word_embeddings")) keys.set("tie_word_embeddings", true);
  const json* projection = keys.find("feed_forward_proj");
  if (projection == nullptr || !projection->is_string()) return;
  const std::string text = *projection;
  keys.set("is_gated_act", text.starts_with("gated"));
  keys.set("dense_act_fn", text == "gated-gelu" ? "gelu_new" : text.substr(text.rfind('-') + 1));
}

void deberta(ClassKeys& keys) {
  keys.set_if_absent("pooler_hidden_size", keys.find("hidden_size"));
}

void ernie_moe(ClassKeys& keys) {
  const json* end = keys.find("moe_layer_end_index");
  const auto layers = keys.size("num_hidden_layers");
  if (end != nullptr && *end == -1 && layers) keys.set("moe_layer_end_index", *layers - 1);
}

void gpt_bigcode(ClassKeys& keys) {
  const json* heads = keys.find("n_head");
  if (heads != nullptr)
    keys.set("num_key_value_heads", keys.flag("multi_query") ? json(1) : *heads);
}

void exaone4(ClassKeys& keys) {
  if (!keys.has("sliding_window")) keys.set("sliding_window_pattern", 0);
}

constexpr std::array<std::pair<std::string_view, Rule>, 28> kRules = {{
    {"bamba", hybrid_mamba},
    {"cohere2", fixed_head_dim},
    {"deberta-v2", deberta},
    {"deepseek_v2", latent_attention},
    {"deepseek_v3", latent_attention},
    {"ernie4_5_moe", ernie_moe},
    {"exaone4", exaone4},
    {"falcon", falcon},
    {"falcon_mamba", mamba},
    {"gemma", gemma},
    {"gemma3_text", gemma3},
    {"gpt_bigcode", gpt_bigcode},
    {"granitemoehybrid", hybrid_mamba},
    {"jamba", jamba},
    {"kimi_linear", kimi_linear},
    {"mamba", mamba},
    {"mamba2", mamba2},
    {"minicpm3", minicpm3},
    {"opt", opt},
    {"qwen2", window_is_optional},
    {"qwen2_moe", qwen2_moe},
    {"qwen3", window_is_optional},
    {"qwen3_moe", qwen3_moe},
    {"qwen3_next", qwen3_next},
    {"recurrent_gemma", recurrent_gemma},
    {"rwkv", rwkv},
    {"swin", swin},
    {"t5", t5},
}};

}  // namespace

void derive_sizes(std::string_view model_type, ClassKeys& keys) {
  const auto* rule = std::find_if(kRules.begin(), kRules.end(),
                                  [&](const auto& entry) { return entry.first == model_type; });
  if (rule != kRules.end()) rule->second(keys);
  if (keys.declares("num_key_value_heads")) {
    keys.set_if_absent("num_key_value_heads", keys.find("num_attention_heads"));
  }
  if (keys.declares("head_dim") && !keys.has("head_dim")) fixed_head_dim(keys);
}

}  // namespace plimsoll::formats
