// Decoders that mix attention with state spaces, linear attention or convolutions, layer by layer.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/inventory/decoder.hpp"
#include "plimsoll/formats/inventory/families.hpp"
#include "plimsoll/formats/inventory/latent_attention.hpp"
#include "plimsoll/formats/inventory/state_spaces.hpp"

namespace plimsoll::formats {
namespace {

DecoderStyle plain_attention(ConfigReader& reader) {
  DecoderStyle style;
  style.qkv_bias = style.out_bias = reader.flag("attention_bias");
  return style;
}

// --- Mamba beside attention

Mamba2Sizes bamba_mixer(ConfigReader& reader, std::int64_t width) {
  Mamba2Sizes sizes;
  sizes.width = width;
  sizes.inner = checked_mul(reader.size("mamba_expand"), width);
  sizes.heads = reader.size("mamba_n_heads");
  sizes.groups = reader.size("mamba_n_groups");
  sizes.state = reader.size("mamba_d_state");
  sizes.kernel = reader.size("mamba_d_conv");
  sizes.convolution_bias = reader.flag("mamba_conv_bias");
  sizes.bias = reader.flag("mamba_proj_bias");
  return sizes;
}

void bamba(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = plain_attention(reader);
  style.norms = {"input_layernorm", "pre_ff_layernorm"};
  style.final_norm = "model.final_layernorm";
  const bool mlp_bias = reader.flag("mlp_bias");
  const nlohmann::json* attention = reader.complete("attn_layer_indices");
  Decoder d(reader, g, style);
  const Mamba2Sizes mixer = bamba_mixer(reader, d.width);
  write_decoder(d, [&](std::int64_t i) {
    const bool attends = attention != nullptr && std::find(attention->begin(), attention->end(),
                                                           nlohmann::json(i)) != attention->end();
    d.gated_mlp("feed_forward", d.feed_forward, mlp_bias, ParameterRole::kMlp);
    d.norms();
    if (attends) {
      d.attention();
    } else {
      write_mamba2(g, "mamba", mixer);
    }
  });
}

void granite_hybrid(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style = plain_attention(reader);
  style.rotary_buffers =
      reader.has("position_embedding_type") && reader.text("position_embedding_type") == "rope";
  const std::int64_t experts = reader.count("num_local_experts");
  const std::int64_t used = reader.count("num_experts_per_tok");
  const std::int64_t shared = reader.size("shared_intermediate_size");
  Decoder d(reader, g, style);
  const Mamba2Sizes mixer = bamba_mixer(reader, d.width);
  const std::vector<std::string> types = reader.texts("layer_types", d.layers);
  if (experts > 0 && used > experts) {
    reader.refuse_key("num_experts_per_tok",
                      fmt::format("{} of {} experts, expected at most {}", used, experts, experts));
  }
  write_decoder(d, [&](std::int64_t i) {
    d.norms();
    if (experts > 0) {
      d.router("block_sparse_moe.router", experts);
      d.experts("block_sparse_moe.experts", experts, d.feed_forward, used);
    }
    g.role(experts > 0 ? ParameterRole::kSharedExperts : ParameterRole::kMlp);
    g.linear("shared_mlp.input_linear", checked_mul(2, shared), d.width);
    g.linear("shared_mlp.output_linear", d.width, shared);
    if (types[static_cast<std::size_t>(i)] == kFullAttention) {
      d.attention();
    } else {
      write_mamba2(g, "mamba", mixer);
    }
  });
}

void jamba(ConfigReader& reader, InventoryBuilder& g) {
  DecoderStyle style;
  style.norms = {"input_layernorm", "pre_ff_layernorm"};
  style.final_norm = "model.final_layernorm";
  style.rotary_buffers = false;
  const std::int64_t experts = reader.size("num_experts");
  const std::int64_t used = std::min(experts, reader.size("num_experts_per_tok"));
  const std::int64_t attention_period = reader.size("attn_layer_period");
  const std::int64_t attention_offset = reader.count("attn_layer_offset");
  const std::int64_t expert_period = reader.size("expert_layer_period");
  const std::int64_t expert_offset = reader.count("expert_layer_offset");
  Decoder d(reader, g, style);
  MambaSizes mixer;
  mixer.width = d.width;
  mixer.inner = checked_mul(reader.size("mamba_expand"), d.width);
  mixer.state = reader.size("mamba_d_state");
  mixer.rank = reader.derived_size("mamba_dt_rank");
  mixer.kernel = reader.size("mamba_d_conv");
  mixer.convolution_bias = reader.flag("mamba_conv_bias");
  mixer.bias = reader.flag("mamba_proj_bias");
  write_decoder(d, [&](std::int64_t i) {
    if (i % attention_period == attention_offset) {
      d.attention();
    } else {
      write_mamba(g, "mamba", mixer);
      g.norm("mamba.dt_layernorm", mixer.rank);
      g.norm("mamba.b_layernorm", mixer.state);
      g.norm("mamba.c_layernorm", mixer.state);
    }
    if (experts > 1 && i % expert_period == expert_offset) {
      d.router("feed_forward.router", experts);
      d.experts("feed_forward.experts", experts, d.feed_forward, used);
    } else {
      d.gated_mlp("feed_forward", d.feed_forward, false, ParameterRole::kMlp);
    }
    d.norms();
  });
}

// --- others

void kimi_linear(ConfigReader& reader, InventoryBuilder& g) {
  const LatentAttention attention(reader);
  const std::int64_t heads = reader.size("linear_num_heads");
  const std::int64_t head_dim = reader.size("linear_head_dim");
  const std::int64_t kernel = reader.size("linear_conv_kernel_dim");
  const std::int64_t inner = checked_mul(heads, head_dim);
  const std::int64_t experts = reader.size("num_experts");
  const std::int64_t used = std::min(experts, reader.size("num_experts_per_token"));
  const std::int64_t expert_width = reader.size("moe_intermediate_size");
  const std::int64_t shared = checked_mul(reader.count("num_shared_experts"), expert_width);
  DecoderStyle style;
  style.tied = false;
  style.rotary_buffers = false;
  Decoder d(reader, g, style);
  const std::vector<std::string> types = reader.texts("layer_types", d.layers);
  const std::vector<std::string> mlps = reader.texts("mlp_layer_types", d.layers);
  const auto delta = [&] {
    g.role(ParameterRole::kMixer);
    for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
      g.linear(fmt::format("self_attn.{}", name), inner, d.width);
    }
    g.convolution("self_attn.conv1d", {checked_mul(3, inner), 1, kernel}, false);
    g.tensor("self_attn.forget_gate.dt_bias", {inner});
    g.tensor("self_attn.forget_gate.A_log", {1, 1, heads, 1});
    g.linear("self_attn.forget_gate.f_a_proj", head_dim, d.width);
    g.linear("self_attn.forget_gate.f_b_proj", inner, head_dim);
    g.linear("self_attn.b_proj", heads, d.width);
    g.linear("self_attn.g_a_proj", head_dim, d.width);
    g.linear("self_attn.g_b_proj", inner, head_dim);
    g.norm("self_attn.o_norm", head_dim);
    g.linear("self_attn.o_proj", d.width, inner);
  };
  write_decoder(d, [&](std::int64_t i) {
    const auto layer = static_cast<std::size_t>(i);
    if (types[layer] == kFullAttention) {
      attention.write(d);
    } else {
      delta();
    }
    if (mlps[layer] == "sparse") {
      d.router("mlp.gate", experts);
      d.experts("mlp.experts", experts, expert_width, used);
      g.buffer("mlp.gate.e_score_correction_bias", {experts}, /*persistent=*/true);
      d.gated_mlp("mlp.shared_experts", shared, false, ParameterRole::kSharedExperts);
    } else {
      d.mlp();
    }
    d.norms();
  });
}

// The block's width: two thirds of the given one, scaled, rounded up to a multiple.
std::int64_t lfm2_inner(ConfigReader& reader) {
  const std::int64_t given = reader.size("intermediate_size");
  if (!reader.flag("block_auto_adjust_ff_dim")) return given;
  std::int64_t inner = checked_mul(2, given) / 3;
  if (!reader.has("block_ffn_dim_multiplier")) return inner;
  inner = reader.scaled(std::max<std::int64_t>(1, inner), "block_ffn_dim_multiplier");
  const std::int64_t multiple = reader.size("block_multiple_of");
  return checked_mul(multiple, checked_add(inner, multiple - 1) / multiple);
}

DecoderStyle lfm2_style() {
  DecoderStyle style;
  style.norms = {"operator_norm", "ffn_norm"};
  style.final_norm = "model.embedding_norm";
  style.out = "self_attn.out_proj";
  style.qk_norm = QkNorm::kHead;
  style.q_norm = "self_attn.q_layernorm";
  style.k_norm = "self_attn.k_layernorm";
  return style;
}

void write_short_convolution(Decoder& d, std::int64_t kernel, bool bias) {
  d.g.role(ParameterRole::kMixer);
  d.g.convolution("conv.conv", {d.width, 1, kernel}, bias);
  d.g.linear("conv.in_proj", checked_mul(3, d.width), d.width, bias);
  d.g.linear("conv.out_proj", d.width, d.width, bias);
}

void write_lfm2_mlp(Decoder& d, std::int64_t inner) {
  d.g.role(ParameterRole::kMlp);
  d.g.linear("feed_forward.w1", inner, d.width);
  d.g.linear("feed_forward.w3", inner, d.width);
  d.g.linear("feed_forward.w2", d.width, inner);
}

void lfm2(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t inner = lfm2_inner(reader);
  const std::int64_t kernel = reader.size("conv_L_cache");
  const bool bias = reader.flag("conv_bias");
  Decoder d(reader, g, lfm2_style(), "");
  const std::vector<std::string> types = reader.texts("layer_types", d.layers);
  write_decoder(d, [&](std::int64_t i) {
    if (types[static_cast<std::size_t>(i)] == kFullAttention) {
      d.attention();
    } else {
      write_short_convolution(d, kernel, bias);
    }
    write_lfm2_mlp(d, inner);
    d.norms();
  });
}

void lfm2_moe(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t kernel = reader.size("conv_L_cache");
  const bool bias = reader.flag("conv_bias");
  const std::int64_t experts = reader.size("num_experts");
  const std::int64_t used = std::min(experts, reader.size("num_experts_per_tok"));
  const std::int64_t inner = reader.size("moe_intermediate_size");
  const std::int64_t dense = reader.count("num_dense_layers");
  const bool steered = reader.flag("use_expert_bias");
  Decoder d(reader, g, lfm2_style());
  const std::vector<std::string> types = reader.texts("layer_types", d.layers);
  write_decoder(d, [&](std::int64_t i) {
    if (types[static_cast<std::size_t>(i)] == kFullAttention) {
      d.attention();
    } else {
      write_short_convolution(d, kernel, bias);
    }
    if (i < dense) {
      write_lfm2_mlp(d, d.feed_forward);
    } else {
      d.router("feed_forward.gate", experts);
      d.experts("feed_forward.experts", experts, inner, used);
      if (steered) g.buffer("feed_forward.expert_bias", {experts}, /*persistent=*/true);
    }
    d.norms();
  });
}

void write_lightning(Decoder& d, std::int64_t block) {
  InventoryBuilder& g = d.g;
  const std::int64_t inner = checked_mul(d.heads, d.head_dim);
  g.role(ParameterRole::kMixer);
  g.norm("self_attn.norm", inner);
  g.linear("self_attn.qkv_proj", checked_mul(3, inner), d.width);
  g.linear("self_attn.out_proj", d.width, inner);
  g.linear("self_attn.output_gate", inner, d.width);
  g.buffer("self_attn.slope_rate", {d.heads, 1, 1}, /*persistent=*/true);
  g.buffer("self_attn.query_decay", {d.heads, block, 1}, /*persistent=*/true);
  g.buffer("self_attn.key_decay", {d.heads, block, 1}, /*persistent=*/true);
  g.buffer("self_attn.diagonal_decay", {1, d.heads, block, block}, /*persistent=*/true);
}

void minimax(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t experts = reader.size("num_local_experts");
  const std::int64_t used = std::min(experts, reader.size("num_experts_per_tok"));
  const std::int64_t block = reader.size("block_size");
  Decoder d(reader, g, {});
  const std::vector<std::string> types = reader.texts("layer_types", d.layers);
  write_decoder(d, [&](std::int64_t i) {
    if (types[static_cast<std::size_t>(i)] == kFullAttention) {
      d.attention();
    } else {
      write_lightning(d, block);
    }
    d.router("mlp.gate", experts);
    d.experts("mlp.experts", experts, d.feed_forward, used);
    d.norms();
  });
}

constexpr std::array<InventoryFamily, 7> kHybrids = {{
    {"bamba", bamba, "BambaForCausalLM"},
    {"granitemoehybrid", granite_hybrid, "GraniteMoeHybridForCausalLM"},
    {"jamba", jamba, "JambaForCausalLM"},
    {"kimi_linear", kimi_linear, "KimiLinearForCausalLM"},
    {"lfm2", lfm2, "Lfm2ForCausalLM"},
    {"lfm2_moe", lfm2_moe, "Lfm2MoeForCausalLM"},
    {"minimax", minimax, "MiniMaxForCausalLM"},
}};

}  // namespace

const InventoryFamily* find_hybrid(std::string_view model_type) {
  return find_in(kHybrids, model_type);
}

}  // namespace plimsoll::formats
