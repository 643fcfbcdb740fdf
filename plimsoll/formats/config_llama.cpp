// Llama and the model types that differ from it in a few values.
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/config_parts.hpp"
#include "plimsoll/formats/json_text.hpp"

namespace plimsoll::formats {
namespace {

using network::Architecture;
using network::NetworkSpec;
using network::NormPlacement;
using network::QkvLayout;
using nlohmann::json;

NetworkSpec read_llama_like(ConfigReader& reader) {
  NetworkSpec spec = read_common_sizes(reader);
  read_activation(reader, spec, "hidden_act");
  spec.norm_eps = reader.positive("rms_norm_eps");
  read_layer_types(reader, spec);
  read_rotary(reader, spec);
  return spec;
}

NetworkSpec read_llama(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  spec.family = network::Family::kLlama;
  spec.attention_bias = reader.flag("attention_bias");
  spec.mlp_bias = reader.flag("mlp_bias");
  return spec;
}

NetworkSpec read_mistral(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  spec.family = network::Family::kLlama;
  read_window(reader, spec);
  return spec;
}

NetworkSpec read_qwen2(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  spec.architecture.qkv_bias = true;
  return spec;
}

NetworkSpec read_qwen3(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  spec.attention_bias = reader.flag("attention_bias");
  spec.architecture.qk_norm = network::QkNorm::kPerHead;
  return spec;
}

NetworkSpec read_arcee(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  spec.attention_bias = reader.flag("attention_bias");
  spec.mlp_bias = reader.flag("mlp_bias");
  spec.architecture.gated = false;
  return spec;
}

NetworkSpec read_granite(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  spec.attention_bias = reader.flag("attention_bias");
  spec.mlp_bias = reader.flag("mlp_bias");
  Architecture& a = spec.architecture;
  a.embedding_scale = reader.positive("embedding_multiplier");
  a.residual_scale = reader.positive("residual_multiplier");
  a.attention_scale = reader.positive("attention_multiplier");
  a.logit_scale = 1 / reader.positive("logits_scaling");
  return spec;
}

NetworkSpec read_hunyuan(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  spec.attention_bias = reader.flag("attention_bias");
  spec.architecture.qk_norm = network::QkNorm::kPerHead;
  spec.architecture.qk_norm_after_rotary = true;
  return spec;
}

// no_rope_layers: 1 where a layer turns its heads, in spite of the name.
NetworkSpec read_smollm3(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  spec.attention_bias = reader.flag("attention_bias");
  spec.mlp_bias = reader.flag("mlp_bias");
  const json* rotary = reader.complete("no_rope_layers");
  if (reader.error() || rotary == nullptr || !has_layer_facts(spec)) return spec;
  if (!rotary->is_array() || rotary->size() != static_cast<std::size_t>(spec.layers)) {
    reader.refuse("/no_rope_layers", fmt::format("{}, expected a list of 0 and 1 with an entry for "
                                                 "each of the {} layers",
                                                 json_value_text(*rotary), spec.layers));
    return spec;
  }
  spec.layer_facts.resize(rotary->size());
  for (std::size_t i = 0; i < rotary->size(); ++i) spec.layer_facts[i].rotary = rotary->at(i) != 0;
  return spec;
}

// The first OLMo normalises without weights.
NetworkSpec read_olmo(ConfigReader& reader) {
  NetworkSpec spec = read_common_sizes(reader);
  read_activation(reader, spec, "hidden_act");
  read_rotary(reader, spec);
  constexpr double kEps = 1e-5;  // of the class: its config has no key for it
  use_layer_norm(spec, kEps, /*bias=*/false);
  spec.architecture.norm_weight = false;
  spec.attention_bias = reader.flag("attention_bias");
  if (reader.find("clip_qkv") != nullptr) spec.architecture.qkv_clip = reader.positive("clip_qkv");
  return spec;
}

NetworkSpec read_olmo2(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  spec.attention_bias = reader.flag("attention_bias");
  spec.architecture.placement = NormPlacement::kOutput;
  spec.architecture.qk_norm = network::QkNorm::kWhole;
  return spec;
}

// With a window only the layers that have it turn their heads.
NetworkSpec read_exaone4(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  spec.architecture.placement = NormPlacement::kOutput;
  spec.architecture.qk_norm = network::QkNorm::kPerHead;
  if (reader.complete("sliding_window") == nullptr || reader.error()) return spec;
  if (!has_layer_facts(spec)) return spec;
  spec.layer_facts.resize(static_cast<std::size_t>(spec.layers));
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    spec.layer_facts[static_cast<std::size_t>(i)].rotary = slides(reader, i);
  }
  return spec;
}

NetworkSpec read_phi3(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  Architecture& a = spec.architecture;
  a.qkv = QkvLayout::kInOrder;
  a.fused_gate_up = true;
  a.embedding_dropout = true;
  a.residual_dropout = true;
  read_window(reader, spec);
  for (const char* key : {"resid_pdrop", "embd_pdrop"}) {
    spec.config_dropout = std::max(spec.config_dropout, reader.probability(key));
  }
  return spec;
}

NetworkSpec read_glm(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  Architecture& a = spec.architecture;
  a.qkv_bias = reader.flag("attention_bias");
  a.fused_gate_up = true;
  a.rotary_interleaved = true;
  return spec;
}

NetworkSpec read_glm4(ConfigReader& reader) {
  NetworkSpec spec = read_glm(reader);
  spec.architecture.placement = NormPlacement::kBoth;
  return spec;
}

}  // namespace

std::span<const ModelType> llama_types() {
  static const std::array<ModelType, 16> kTypes = {{
      {"arcee", read_arcee, llama_keys()},
      {"exaone4", read_exaone4, llama_keys()},
      {"glm", read_glm, llama_keys()},
      {"glm4", read_glm4, llama_keys()},
      {"granite", read_granite, llama_keys()},
      {"hunyuan_v1_dense", read_hunyuan, llama_keys()},
      {"llama", read_llama, llama_keys()},
      {"ministral3", read_mistral, llama_keys()},
      {"mistral", read_mistral, llama_keys()},
      {"olmo", read_olmo, llama_keys()},
      {"olmo2", read_olmo2, llama_keys()},
      {"olmo3", read_olmo2, llama_keys()},
      {"phi3", read_phi3, llama_keys()},
      {"qwen2", read_qwen2, llama_keys()},
      {"qwen3", read_qwen3, llama_keys()},
      {"smollm3", read_smollm3, llama_keys()},
  }};
  return kTypes;
}

}  // namespace plimsoll::formats
