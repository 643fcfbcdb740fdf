// GPTs: LayerNorms with biases, plain MLPs, q, k and v in one matrix or in three.
#include <algorithm>
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
using network::Positions;
using network::QkvLayout;

// --- gpt2 and its kin: n_embd, n_layer, n_head

void refuse_or_note_gpt2_variants(ConfigReader& reader) {
  if (reader.flag("add_cross_attention")) {
    reader.refuse("/add_cross_attention", "true, expected false: cross-attention is not planned");
  }
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"}) {
    if (reader.flag(key)) reader.assume(fmt::format("{}: true, planned without", key));
  }
  if (!reader.flag("scale_attn_weights")) {
    reader.assume("scale_attn_weights: false, planned with scaled scores");
  }
}

NetworkSpec read_gpt2_sizes(ConfigReader& reader) {
  NetworkSpec spec;
  spec.family = network::Family::kDecoder;
  spec.architecture = network::gpt_architecture();
  spec.vocabulary = reader.size("vocab_size");
  spec.width = reader.size("n_embd");
  spec.layers = reader.size("n_layer");
  spec.heads = reader.size("n_head");
  spec.positions = reader.size("n_positions");
  spec.kv_heads = spec.heads;
  spec.head_dim = spec.width / spec.heads;
  if (spec.width % spec.heads != 0) {
    reader.refuse("/n_head", fmt::format("{} does not divide width {}", spec.heads, spec.width));
  }
  spec.feed_forward = reader.size_or("n_inner", 4 * spec.width);
  if (reader.find("n_inner") == nullptr && !reader.is_null("n_inner")) {
    reader.assume(fmt::format("n_inner: absent, 4 n_embd = {}", spec.feed_forward));
  }
  spec.tied_head = reader.noted_flag("tie_word_embeddings");
  read_activation(reader, spec, "activation_function");
  spec.norm_eps = reader.positive("layer_norm_epsilon");
  spec.attention_bias = true;
  spec.mlp_bias = true;
  read_dropouts(reader, spec, {"resid_pdrop", "embd_pdrop", "attn_pdrop"});
  return spec;
}

NetworkSpec read_gpt2(ConfigReader& reader) {
  NetworkSpec spec = read_gpt2_sizes(reader);
  spec.family = network::Family::kGpt2;
  refuse_or_note_gpt2_variants(reader);
  return spec;
}

NetworkSpec read_gpt_bigcode(ConfigReader& reader) {
  NetworkSpec spec = read_gpt2_sizes(reader);
  if (reader.flag("multi_query")) {
    spec.kv_heads = 1;
  } else {
    spec.architecture.qkv = QkvLayout::kByHead;
  }
  return spec;
}

NetworkSpec read_gptj(ConfigReader& reader) {
  NetworkSpec spec = read_gpt2_sizes(reader);
  Architecture& a = spec.architecture;
  a.positions = Positions::kRotary;
  a.rotary_dim = reader.optional_size("rotary_dim").value_or(0);
  a.rotary_interleaved = true;
  a.parallel = true;
  a.shared_norm = true;
  a.qkv = QkvLayout::kSeparate;
  a.head_bias = true;
  spec.attention_bias = false;
  return spec;
}

NetworkSpec read_codegen(ConfigReader& reader) {
  NetworkSpec spec = read_gptj(reader);
  spec.architecture.qkv = QkvLayout::kInOrder;
  return spec;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kGpt2Keys = {{
    {"width", "n_embd"},
    {"layers", "n_layer"},
    {"heads", "n_head"},
    {"kv_heads", "n_head"},
    {"head_dim", "n_head"},
    {"feed_forward", "n_inner"},
    {"vocabulary", "vocab_size"},
    {"positions", "n_positions"},
    {"activation", "activation_function"},
    {"norm_eps", "layer_norm_epsilon"},
    {"rotary_dim", "rotary_dim"},
}};

// --- hidden_size, num_hidden_layers, num_attention_heads

NetworkSpec read_gpt_neox(ConfigReader& reader) {
  NetworkSpec spec = read_common_sizes(reader);
  read_activation(reader, spec, "hidden_act");
  read_rotary(reader, spec);
  use_layer_norm(spec, reader.positive("layer_norm_eps"));
  Architecture& a = spec.architecture;
  a.qkv = QkvLayout::kByHead;
  a.gated = false;
  a.parallel = reader.flag("use_parallel_residual");
  a.embedding_dropout = true;
  a.residual_dropout = true;
  spec.attention_bias = reader.flag("attention_bias");
  spec.mlp_bias = true;
  read_dropouts(reader, spec, {"hidden_dropout"});
  return spec;
}

NetworkSpec read_phi(ConfigReader& reader) {
  NetworkSpec spec = read_common_sizes(reader);
  read_activation(reader, spec, "hidden_act");
  read_rotary(reader, spec);
  use_layer_norm(spec, reader.positive("layer_norm_eps"));
  Architecture& a = spec.architecture;
  a.gated = false;
  a.parallel = true;
  a.shared_norm = true;
  a.head_bias = true;
  a.embedding_dropout = true;
  a.residual_dropout = true;
  if (reader.flag("qk_layernorm")) {
    a.qk_norm = network::QkNorm::kPerHead;
    a.qk_norm_bias = true;
  }
  spec.attention_bias = true;
  spec.mlp_bias = true;
  read_dropouts(reader, spec, {"resid_pdrop", "embd_pdrop"});
  return spec;
}

NetworkSpec read_persimmon(ConfigReader& reader) {
  NetworkSpec spec = read_common_sizes(reader);
  read_activation(reader, spec, "hidden_act");
  read_rotary(reader, spec);
  use_layer_norm(spec, reader.positive("layer_norm_eps"));
  Architecture& a = spec.architecture;
  a.qkv = QkvLayout::kByHead;
  a.gated = false;
  a.residual_dropout = true;
  if (reader.flag("qk_layernorm")) {
    a.qk_norm = network::QkNorm::kPerHead;
    a.qk_norm_bias = true;
  }
  spec.attention_bias = true;
  spec.mlp_bias = true;
  read_dropouts(reader, spec, {"hidden_dropout"});
  return spec;
}

NetworkSpec read_stablelm(ConfigReader& reader) {
  NetworkSpec spec = read_common_sizes(reader);
  read_activation(reader, spec, "hidden_act");
  read_rotary(reader, spec);
  use_layer_norm(spec, reader.positive("layer_norm_eps"));
  Architecture& a = spec.architecture;
  a.qkv_bias = reader.flag("use_qkv_bias");
  if (reader.flag("qk_layernorm")) a.qk_norm = network::QkNorm::kPerHeadOwn;
  a.parallel = a.shared_norm = reader.flag("use_parallel_residual");
  a.residual_dropout = true;
  read_dropouts(reader, spec, {"hidden_dropout"});
  return spec;
}

NetworkSpec read_starcoder2(ConfigReader& reader) {
  NetworkSpec spec = read_common_sizes(reader);
  read_activation(reader, spec, "hidden_act");
  read_rotary(reader, spec);
  read_window(reader, spec);
  use_layer_norm(spec, reader.positive("norm_epsilon"));
  Architecture& a = spec.architecture;
  a.gated = false;
  a.embedding_dropout = true;
  a.residual_dropout = true;
  spec.attention_bias = spec.mlp_bias = reader.flag("use_bias");
  read_dropouts(reader, spec, {"residual_dropout", "embedding_dropout"});
  return spec;
}

NetworkSpec read_nemotron(ConfigReader& reader) {
  NetworkSpec spec = read_common_sizes(reader);
  read_activation(reader, spec, "hidden_act");
  read_rotary(reader, spec);
  use_layer_norm(spec, reader.positive("norm_eps"));
  spec.architecture.norm = NormKind::kLayerOnePlus;
  spec.architecture.gated = false;
  spec.attention_bias = reader.flag("attention_bias");
  spec.mlp_bias = reader.flag("mlp_bias");
  return spec;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kNeoxKeys = {{
    {"width", "hidden_size"},
    {"layers", "num_hidden_layers"},
    {"heads", "num_attention_heads"},
    {"kv_heads", "num_key_value_heads"},
    {"head_dim", "num_attention_heads"},
    {"feed_forward", "intermediate_size"},
    {"vocabulary", "vocab_size"},
    {"positions", "max_position_embeddings"},
    {"activation", "hidden_act"},
    {"norm_eps", "layer_norm_eps"},
    {"rope_theta", "rope_theta"},
    {"rotary_dim", "partial_rotary_factor"},
    {"window", "sliding_window"},
}};

// --- opt and biogpt: learned positions behind an offset

constexpr double kDefaultNormEps = 1e-5;  // torch's: these classes have no key for it
constexpr std::int64_t kPositionOffset = 2;

NetworkSpec read_opt(ConfigReader& reader) {
  NetworkSpec spec;
  spec.family = network::Family::kDecoder;
  spec.architecture = network::gpt_architecture();
  spec.vocabulary = reader.size("vocab_size");
  spec.width = reader.size("hidden_size");
  spec.layers = reader.size("num_hidden_layers");
  read_heads(reader, spec);
  spec.feed_forward = reader.size("ffn_dim");
  spec.positions = reader.size("max_position_embeddings");
  spec.tied_head = reader.noted_flag("tie_word_embeddings");
  read_activation(reader, spec, "activation_function");
  spec.norm_eps = kDefaultNormEps;
  spec.attention_bias = spec.mlp_bias = reader.flag("enable_bias");
  Architecture& a = spec.architecture;
  a.qkv = QkvLayout::kSeparate;
  a.position_offset = kPositionOffset;
  a.embedding_dropout = false;
  a.norm_weight = a.norm_bias = reader.flag("layer_norm_elementwise_affine");
  const bool before = reader.flag("do_layer_norm_before");
  a.placement = before ? NormPlacement::kPre : NormPlacement::kPostResidual;
  a.final_norm = before && !reader.flag("_remove_final_layer_norm");
  const std::int64_t embedded = reader.size_or("word_embed_proj_dim", spec.width);
  if (embedded != spec.width) a.embedding_width = embedded;
  read_dropouts(reader, spec, {"dropout", "attention_dropout"});
  return spec;
}

NetworkSpec read_biogpt(ConfigReader& reader) {
  NetworkSpec spec;
  spec.family = network::Family::kDecoder;
  spec.architecture = network::gpt_architecture();
  spec.vocabulary = reader.size("vocab_size");
  spec.width = reader.size("hidden_size");
  spec.layers = reader.size("num_hidden_layers");
  read_heads(reader, spec);
  spec.feed_forward = reader.size("intermediate_size");
  spec.positions = reader.size("max_position_embeddings");
  spec.tied_head = reader.noted_flag("tie_word_embeddings");
  read_activation(reader, spec, "hidden_act");
  spec.norm_eps = kDefaultNormEps;
  spec.attention_bias = spec.mlp_bias = true;
  Architecture& a = spec.architecture;
  a.qkv = QkvLayout::kSeparate;
  a.position_offset = kPositionOffset;
  if (reader.flag("scale_embedding")) {
    a.embedding_scale = std::sqrt(static_cast<double>(spec.width));
  }
  read_dropouts(reader, spec, {"hidden_dropout_prob", "attention_probs_dropout_prob"});
  return spec;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kOptKeys = {{
    {"width", "hidden_size"},
    {"layers", "num_hidden_layers"},
    {"heads", "num_attention_heads"},
    {"head_dim", "num_attention_heads"},
    {"feed_forward", "ffn_dim"},
    {"vocabulary", "vocab_size"},
    {"positions", "max_position_embeddings"},
    {"activation", "activation_function"},
}};

}  // namespace

std::span<const ModelType> gpt_types() {
  static const std::array<ModelType, 12> kTypes = {{
      {"biogpt", read_biogpt, kNeoxKeys},
      {"codegen", read_codegen, kGpt2Keys},
      {"gpt2", read_gpt2, kGpt2Keys},
      {"gpt_bigcode", read_gpt_bigcode, kGpt2Keys},
      {"gpt_neox", read_gpt_neox, kNeoxKeys},
      {"gptj", read_gptj, kGpt2Keys},
      {"nemotron", read_nemotron, kNeoxKeys},
      {"opt", read_opt, kOptKeys},
      {"persimmon", read_persimmon, kNeoxKeys},
      {"phi", read_phi, kNeoxKeys},
      {"stablelm", read_stablelm, kNeoxKeys},
      {"starcoder2", read_starcoder2, kNeoxKeys},
  }};
  return kTypes;
}

}  // namespace plimsoll::formats
