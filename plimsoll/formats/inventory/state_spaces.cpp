// Models without attention: Mamba, Mamba 2, RWKV; and RecurrentGemma's linear recurrence.
#include "plimsoll/formats/inventory/state_spaces.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/inventory/decoder.hpp"
#include "plimsoll/formats/inventory/families.hpp"

namespace plimsoll::formats {
namespace {

// Prefixes the names of one module.
class Named {
 public:
  explicit Named(std::string_view name) : name_(name) {}
  std::string operator()(std::string_view part) const { return fmt::format("{}.{}", name_, part); }

 private:
  std::string_view name_;
};

}  // namespace

void write_mamba(InventoryBuilder& g, std::string_view name, const MambaSizes& s) {
  const Named in(name);
  g.role(ParameterRole::kMixer);
  g.tensor(in("A_log"), {s.inner, s.state});
  g.tensor(in("D"), {s.inner});
  g.convolution(in("conv1d"), {s.inner, 1, s.kernel}, s.convolution_bias);
  g.linear(in("in_proj"), checked_mul(2, s.inner), s.width, s.bias);
  g.linear(in("x_proj"), checked_add(s.rank, checked_mul(2, s.state)), s.inner);
  g.linear(in("dt_proj"), s.inner, s.rank, true);
  g.linear(in("out_proj"), s.width, s.inner, s.bias);
}

void write_mamba2(InventoryBuilder& g, std::string_view name, const Mamba2Sizes& s) {
  const Named in(name);
  const std::int64_t mixed = checked_add(s.inner, checked_mul(2, checked_mul(s.groups, s.state)));
  g.role(ParameterRole::kMixer);
  g.tensor(in("dt_bias"), {s.heads});
  g.tensor(in("A_log"), {s.heads});
  g.tensor(in("D"), {s.heads});
  g.convolution(in("conv1d"), {mixed, 1, s.kernel}, s.convolution_bias);
  g.linear(in("in_proj"), checked_add(checked_add(s.inner, mixed), s.heads), s.width, s.bias);
  g.norm(in("norm"), s.inner);
  g.linear(in("out_proj"), s.width, s.inner, s.bias);
}

namespace {

// The frame of Mamba models: backbone.embeddings, backbone.layers.0.{norm, mixer}, norm_f, lm_head.
template <class Mixer>
void write_backbone(ConfigReader& reader, InventoryBuilder& g, std::int64_t width, Mixer mixer) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t layers = reader.layers("num_hidden_layers");
  g.enter("");
  g.embedding("backbone.embeddings", vocabulary, width, ParameterRole::kTokenEmbedding);
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("backbone.layers.{}.", i), i);
    g.norm("norm", width);
    mixer();
  }
  g.enter("");
  g.norm("backbone.norm_f", width);
  g.role(ParameterRole::kHead);
  if (reader.noted_flag("tie_word_embeddings")) {
    g.tie("backbone.embeddings.weight", "lm_head.weight");
  } else {
    g.linear("lm_head", vocabulary, width);
  }
}

MambaSizes read_mamba(ConfigReader& reader) {
  MambaSizes sizes;
  sizes.width = reader.size("hidden_size");
  sizes.inner = reader.derived_size("intermediate_size");
  sizes.state = reader.size("state_size");
  sizes.rank = reader.derived_size("time_step_rank");
  sizes.kernel = reader.size("conv_kernel");
  sizes.convolution_bias = reader.flag("use_conv_bias");
  sizes.bias = reader.flag("use_bias");
  return sizes;
}

void mamba(ConfigReader& reader, InventoryBuilder& g) {
  const MambaSizes sizes = read_mamba(reader);
  write_backbone(reader, g, sizes.width, [&] { write_mamba(g, "mixer", sizes); });
}

// Its norms of B, C and the step have constant weights.
void falcon_mamba(ConfigReader& reader, InventoryBuilder& g) {
  const MambaSizes sizes = read_mamba(reader);
  write_backbone(reader, g, sizes.width, [&] {
    write_mamba(g, "mixer", sizes);
    g.buffer("mixer.dt_layernorm.weight", {sizes.inner});
    g.buffer("mixer.b_layernorm.weight", {sizes.state});
    g.buffer("mixer.c_layernorm.weight", {sizes.state});
  });
}

void mamba2(ConfigReader& reader, InventoryBuilder& g) {
  Mamba2Sizes sizes;
  sizes.width = reader.size("hidden_size");
  sizes.inner = checked_mul(reader.size("expand"), sizes.width);
  sizes.heads = reader.size("num_heads");
  sizes.groups = reader.size("n_groups");
  sizes.state = reader.size("state_size");
  sizes.kernel = reader.size("conv_kernel");
  sizes.convolution_bias = reader.flag("use_conv_bias");
  sizes.bias = reader.flag("use_bias");
  const std::int64_t per_head = reader.size("head_dim");
  if (checked_mul(sizes.heads, per_head) != sizes.inner) {
    reader.refuse_key("num_heads", fmt::format("{} of {} elements, expected expand * hidden_size = "
                                               "{} elements",
                                               sizes.heads, per_head, sizes.inner));
  }
  write_backbone(reader, g, sizes.width, [&] { write_mamba2(g, "mixer", sizes); });
}

void rwkv_attention(InventoryBuilder& g, std::int64_t width, std::int64_t inner) {
  g.role(ParameterRole::kMixer);
  g.tensor("attention.time_decay", {inner});
  g.tensor("attention.time_first", {inner});
  for (const char* name : {"time_mix_key", "time_mix_value", "time_mix_receptance"}) {
    g.tensor(fmt::format("attention.{}", name), {1, 1, width});
  }
  g.linear("attention.key", inner, width);
  g.linear("attention.value", inner, width);
  g.linear("attention.receptance", inner, width);
  g.linear("attention.output", width, inner);
}

void rwkv(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t width = reader.size("hidden_size");
  const std::int64_t layers = reader.layers("num_hidden_layers");
  const std::int64_t inner = reader.derived_size("attention_hidden_size");
  const std::int64_t feed_forward = reader.derived_size("intermediate_size");
  g.enter("");
  g.embedding("rwkv.embeddings", vocabulary, width, ParameterRole::kTokenEmbedding);
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("rwkv.blocks.{}.", i), i);
    if (i == 0) g.norm("pre_ln", width, true);
    g.norm("ln1", width, true);
    g.norm("ln2", width, true);
    rwkv_attention(g, width, inner);
    g.role(ParameterRole::kMlp);
    g.tensor("feed_forward.time_mix_key", {1, 1, width});
    g.tensor("feed_forward.time_mix_receptance", {1, 1, width});
    g.linear("feed_forward.key", feed_forward, width);
    g.linear("feed_forward.receptance", width, width);
    g.linear("feed_forward.value", width, feed_forward);
  }
  g.enter("");
  g.norm("rwkv.ln_out", width, true);
  g.role(ParameterRole::kHead);
  if (reader.noted_flag("tie_word_embeddings")) {
    g.tie("rwkv.embeddings.weight", "head.weight");
  } else {
    g.linear("head", vocabulary, width);
  }
}

void recurrent_block(Decoder& d, std::int64_t inner, std::int64_t kernel) {
  InventoryBuilder& g = d.g;
  const std::int64_t part = std::max<std::int64_t>(1, inner / d.heads);
  g.role(ParameterRole::kMixer);
  g.linear("temporal_block.linear_y", inner, d.width, true);
  g.linear("temporal_block.linear_x", inner, d.width, true);
  g.linear("temporal_block.linear_out", d.width, inner, true);
  g.convolution("temporal_block.conv_1d", {inner, 1, kernel}, true);
  g.tensor("temporal_block.rg_lru.recurrent_param", {inner});
  for (const char* gate : {"input_gate", "recurrent_gate"}) {
    g.tensor(fmt::format("temporal_block.rg_lru.{}_weight", gate), {d.heads, part, part});
    g.tensor(fmt::format("temporal_block.rg_lru.{}_bias", gate), {d.heads, part});
  }
}

void local_attention(Decoder& d, bool bias) {
  InventoryBuilder& g = d.g;
  const std::int64_t queries = checked_mul(d.heads, d.head_dim);
  const std::int64_t keys = checked_mul(d.kv_heads, d.head_dim);
  g.role(ParameterRole::kAttention);
  g.linear("temporal_block.q_proj", queries, d.width, bias);
  g.linear("temporal_block.k_proj", keys, d.width, bias);
  g.linear("temporal_block.v_proj", keys, d.width, bias);
  g.linear("temporal_block.o_proj", d.width, queries, true);
  d.rotary("temporal_block.rotary_emb.", d.turning());
}

void recurrent_gemma(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style;
  style.rotary_buffers = false;
  style.final_norm = "model.final_norm";
  const std::int64_t recurrent = reader.derived_size("lru_width");
  const std::int64_t kernel = reader.size("conv1d_width");
  const bool bias = reader.flag("attention_bias");
  const nlohmann::json* blocks = reader.complete("block_types");
  Decoder d(reader, g, style);
  const std::int64_t inner = std::max<std::int64_t>(1, d.feed_forward / 2);
  if (blocks == nullptr || !blocks->is_array() || blocks->empty()) {
    reader.refuse_key("block_types", "expected a list such as [\"recurrent\", \"attention\"]");
    return;
  }
  g.enter("model.");
  g.buffer("normalizer", {});
  write_decoder(d, [&](std::int64_t i) {
    g.norm("temporal_pre_norm", d.width);
    const auto block = static_cast<std::size_t>(i) % blocks->size();
    if (blocks->at(block) == "attention") {
      local_attention(d, bias);
    } else {
      recurrent_block(d, recurrent, kernel);
    }
    g.norm("channel_pre_norm", d.width);
    d.gated_mlp("mlp_block", inner, true, ParameterRole::kMlp);
  });
}

constexpr std::array<InventoryFamily, 5> kStateSpaces = {{
    {"falcon_mamba", falcon_mamba, "FalconMambaForCausalLM"},
    {"mamba", mamba, "MambaForCausalLM"},
    {"mamba2", mamba2, "Mamba2ForCausalLM"},
    {"recurrent_gemma", recurrent_gemma, "RecurrentGemmaForCausalLM"},
    {"rwkv", rwkv, "RwkvForCausalLM"},
}};

}  // namespace

const InventoryFamily* find_state_space(std::string_view model_type) {
  return find_in(kStateSpaces, model_type);
}

}  // namespace plimsoll::formats
