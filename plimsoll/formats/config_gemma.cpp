// Gemma and Cohere: scaled embeddings, capped or scaled logits, layers with windows.
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/config_parts.hpp"

namespace plimsoll::formats {
namespace {

using network::Architecture;
using network::NetworkSpec;
using network::NormKind;
using network::NormPlacement;

NetworkSpec read_gemma_like(ConfigReader& reader, std::string_view activation) {
  NetworkSpec spec = read_common_sizes(reader);
  read_activation(reader, spec, activation);
  spec.norm_eps = reader.positive("rms_norm_eps");
  read_layer_types(reader, spec);
  read_rotary(reader, spec);
  spec.attention_bias = reader.flag("attention_bias");
  Architecture& a = spec.architecture;
  a.norm = NormKind::kRmsOnePlus;
  a.embedding_scale = std::sqrt(static_cast<double>(spec.width));
  if (reader.complete("use_bidirectional_attention") != nullptr &&
      reader.flag("use_bidirectional_attention")) {
    reader.refuse("/use_bidirectional_attention",
                  "true, expected false: only the causal model is planned");
  }
  return spec;
}

NetworkSpec read_gemma(ConfigReader& reader) { return read_gemma_like(reader, "hidden_act"); }

NetworkSpec read_gemma2(ConfigReader& reader) {
  NetworkSpec spec = read_gemma_like(reader, "hidden_activation");
  Architecture& a = spec.architecture;
  a.placement = NormPlacement::kBoth;
  a.attention_scale = 1 / std::sqrt(reader.positive("query_pre_attn_scalar"));
  if (reader.complete("attn_logit_softcapping") != nullptr) {
    a.attention_softcap = reader.positive("attn_logit_softcapping");
    reader.assume(fmt::format(
        "attn_logit_softcapping: {}, attention as products and a softmax (no kernel caps scores)",
        a.attention_softcap));
  }
  if (reader.complete("final_logit_softcapping") != nullptr) {
    a.logit_softcap = reader.positive("final_logit_softcapping");
  }
  return spec;
}

NetworkSpec read_gemma3(ConfigReader& reader) {
  NetworkSpec spec = read_gemma2(reader);
  spec.architecture.qk_norm = network::QkNorm::kPerHead;
  return spec;
}

NetworkSpec read_cohere(ConfigReader& reader) {
  NetworkSpec spec = read_common_sizes(reader);
  read_activation(reader, spec, "hidden_act");
  read_layer_types(reader, spec);
  read_rotary(reader, spec);
  use_layer_norm(spec, reader.positive("layer_norm_eps"), /*bias=*/false);
  spec.attention_bias = reader.flag("attention_bias");
  Architecture& a = spec.architecture;
  a.parallel = true;
  a.shared_norm = true;
  a.rotary_interleaved = true;
  a.logit_scale = reader.positive("logit_scale");
  if (reader.complete("use_qk_norm") != nullptr && reader.flag("use_qk_norm")) {
    reader.refuse("/use_qk_norm", "true, expected false: its norms are not planned yet");
  }
  return spec;
}

// Layers that see everything have no positions.
NetworkSpec read_cohere2(ConfigReader& reader) {
  NetworkSpec spec = read_cohere(reader);
  if (reader.error() || !has_layer_facts(spec)) return spec;
  spec.layer_facts.resize(static_cast<std::size_t>(spec.layers));
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    spec.layer_facts[static_cast<std::size_t>(i)].rotary = slides(reader, i);
  }
  return spec;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kGemmaKeys = {{
    {"width", "hidden_size"},
    {"layers", "num_hidden_layers"},
    {"heads", "num_attention_heads"},
    {"kv_heads", "num_key_value_heads"},
    {"head_dim", "head_dim"},
    {"feed_forward", "intermediate_size"},
    {"vocabulary", "vocab_size"},
    {"positions", "max_position_embeddings"},
    {"activation", "hidden_activation"},
    {"norm_eps", "rms_norm_eps"},
    {"rope_theta", "rope_theta"},
    {"window", "sliding_window"},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kCohereKeys = {{
    {"width", "hidden_size"},
    {"layers", "num_hidden_layers"},
    {"heads", "num_attention_heads"},
    {"kv_heads", "num_key_value_heads"},
    {"head_dim", "head_dim"},
    {"feed_forward", "intermediate_size"},
    {"vocabulary", "vocab_size"},
    {"positions", "max_position_embeddings"},
    {"activation", "hidden_act"},
    {"norm_eps", "layer_norm_eps"},
    {"rope_theta", "rope_theta"},
    {"window", "sliding_window"},
}};

}  // namespace

std::span<const ModelType> gemma_types() {
  static const std::array<ModelType, 5> kTypes = {{
      {"cohere", read_cohere, kCohereKeys},
      {"cohere2", read_cohere2, kCohereKeys},
      {"gemma", read_gemma, llama_keys()},
      {"gemma2", read_gemma2, kGemmaKeys},
      {"gemma3_text", read_gemma3, kGemmaKeys},
  }};
  return kTypes;
}

}  // namespace plimsoll::formats
