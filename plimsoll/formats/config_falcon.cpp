// Bloom and Falcon: LayerNorms with biases, one matrix for q, k and v, biases by distance or rotation.
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/config_parts.hpp"

namespace plimsoll::formats {
namespace {

using network::Architecture;
using network::NetworkSpec;
using network::Positions;
using network::QkvLayout;

NetworkSpec read_bloom(ConfigReader& reader) {
  NetworkSpec spec;
  spec.family = network::Family::kDecoder;
  spec.architecture = network::gpt_architecture();
  spec.vocabulary = reader.size("vocab_size");
  spec.width = reader.size("hidden_size");
  spec.layers = reader.size("n_layer");
  spec.heads = spec.kv_heads = reader.size("n_head");
  spec.head_dim = spec.width / spec.heads;
  if (spec.width % spec.heads != 0) {
    reader.refuse("/n_head",
                  fmt::format("{} does not divide hidden_size {}", spec.heads, spec.width));
  }
  spec.feed_forward = 4 * spec.width;
  constexpr std::int64_t kTrainedLength = 2048;
  spec.positions = reader.size_or("seq_length", kTrainedLength);
  if (reader.find("seq_length") == nullptr) {
    reader.assume(
        fmt::format("seq_length: absent, {} (biases by distance have no limit)", kTrainedLength));
  }
  spec.tied_head = reader.noted_flag("tie_word_embeddings");
  spec.activation = network::OpKind::kGeluTanh;
  spec.norm_eps = reader.positive("layer_norm_epsilon");
  spec.attention_bias = spec.mlp_bias = true;
  Architecture& a = spec.architecture;
  a.positions = Positions::kAlibi;
  a.qkv = QkvLayout::kByHead;
  a.embedding_norm = true;
  a.embedding_dropout = false;
  if (reader.flag("apply_residual_connection_post_layernorm")) {
    reader.refuse("/apply_residual_connection_post_layernorm",
                  "true, expected false: residuals of norms' results are not planned");
  }
  read_dropouts(reader, spec, {"hidden_dropout", "attention_dropout"});
  return spec;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kBloomKeys = {{
    {"width", "hidden_size"},
    {"layers", "n_layer"},
    {"heads", "n_head"},
    {"kv_heads", "n_head"},
    {"head_dim", "n_head"},
    {"vocabulary", "vocab_size"},
    {"positions", "seq_length"},
    {"norm_eps", "layer_norm_epsilon"},
}};

// Three layouts under one name: groups (40b), one key and value for all (7b), or one per head (rw).
void read_falcon_heads(ConfigReader& reader, NetworkSpec& spec) {
  Architecture& a = spec.architecture;
  spec.heads = reader.size("num_attention_heads");
  spec.head_dim = spec.width / spec.heads;
  if (spec.width % spec.heads != 0) {
    reader.refuse("/num_attention_heads",
                  fmt::format("{} does not divide hidden_size {}", spec.heads, spec.width));
  }
  spec.kv_heads = spec.heads;
  if (reader.flag("new_decoder_architecture")) {
    spec.kv_heads = reader.size_or("num_kv_heads", spec.heads);
    a.qkv = QkvLayout::kByGroup;
    a.parallel = reader.flag("parallel_attn");
    a.shared_norm = a.parallel && reader.size_or("num_ln_in_parallel_attn", 2) == 1;
    return;
  }
  if (reader.flag("multi_query")) {
    spec.kv_heads = 1;
    a.qkv = QkvLayout::kInOrder;
  } else {
    a.qkv = QkvLayout::kByHead;
  }
  a.parallel = a.shared_norm = reader.flag("parallel_attn");
}

NetworkSpec read_falcon(ConfigReader& reader) {
  NetworkSpec spec;
  spec.family = network::Family::kDecoder;
  spec.vocabulary = reader.size("vocab_size");
  spec.width = reader.size("hidden_size");
  spec.layers = reader.size("num_hidden_layers");
  read_falcon_heads(reader, spec);
  spec.feed_forward = reader.size_or("ffn_hidden_size", 4 * spec.width);
  spec.positions = reader.size("max_position_embeddings");
  spec.tied_head = reader.noted_flag("tie_word_embeddings");
  read_activation(reader, spec, "activation");
  use_layer_norm(spec, reader.positive("layer_norm_epsilon"));
  spec.attention_bias = spec.mlp_bias = reader.flag("bias");
  Architecture& a = spec.architecture;
  a.gated = false;
  a.residual_dropout = true;
  if (reader.flag("alibi")) {
    a.positions = Positions::kAlibi;
  } else {
    read_rotary(reader, spec);
  }
  read_dropouts(reader, spec, {"hidden_dropout", "attention_dropout"});
  return spec;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kFalconKeys = {{
    {"width", "hidden_size"},
    {"layers", "num_hidden_layers"},
    {"heads", "num_attention_heads"},
    {"kv_heads", "num_kv_heads"},
    {"head_dim", "num_attention_heads"},
    {"feed_forward", "ffn_hidden_size"},
    {"vocabulary", "vocab_size"},
    {"positions", "max_position_embeddings"},
    {"activation", "activation"},
    {"norm_eps", "layer_norm_epsilon"},
    {"rope_theta", "rope_theta"},
}};

}  // namespace

std::span<const ModelType> falcon_types() {
  static const std::array<ModelType, 2> kTypes = {{
      {"bloom", read_bloom, kBloomKeys},
      {"falcon", read_falcon, kFalconKeys},
  }};
  return kTypes;
}

}  // namespace plimsoll::formats
