// Hybrids of Qwen: a gated delta rule beside attention whose queries carry a gate.
#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/inventory/decoder.hpp"
#include "plimsoll/formats/inventory/families.hpp"

namespace plimsoll::formats {
namespace {

struct DeltaSizes {
  std::int64_t keys = 1;    // width of queries, and of keys
  std::int64_t values = 1;  // width of values, and of the gate
  std::int64_t value_heads = 1;
  std::int64_t value_dim = 1;
  std::int64_t kernel = 1;
};

DeltaSizes read_delta(ConfigReader& reader) {
  DeltaSizes sizes;
  sizes.keys = checked_mul(reader.size("linear_num_key_heads"), reader.size("linear_key_head_dim"));
  sizes.value_heads = reader.size("linear_num_value_heads");
  sizes.value_dim = reader.size("linear_value_head_dim");
  sizes.values = checked_mul(sizes.value_heads, sizes.value_dim);
  sizes.kernel = reader.size("linear_conv_kernel_dim");
  return sizes;
}

void write_delta(Decoder& d, const DeltaSizes& s, bool fused) {
  InventoryBuilder& g = d.g;
  const std::int64_t mixed = checked_add(checked_mul(2, s.keys), s.values);
  g.role(ParameterRole::kMixer);
  g.tensor("linear_attn.dt_bias", {s.value_heads});
  g.tensor("linear_attn.A_log", {s.value_heads});
  g.convolution("linear_attn.conv1d", {mixed, 1, s.kernel}, false);
  if (fused) {
    g.linear("linear_attn.in_proj_qkvz", checked_add(mixed, s.values), d.width);
    g.linear("linear_attn.in_proj_ba", checked_mul(2, s.value_heads), d.width);
  } else {
    g.linear("linear_attn.in_proj_qkv", mixed, d.width);
    g.linear("linear_attn.in_proj_z", s.values, d.width);
    g.linear("linear_attn.in_proj_b", s.value_heads, d.width);
    g.linear("linear_attn.in_proj_a", s.value_heads, d.width);
  }
  g.norm("linear_attn.norm", s.value_dim);
  g.linear("linear_attn.out_proj", d.width, s.values);
}

void write_gated_attention(Decoder& d, bool bias) {
  InventoryBuilder& g = d.g;
  const std::int64_t queries = checked_mul(d.heads, d.head_dim);
  const std::int64_t keys = checked_mul(d.kv_heads, d.head_dim);
  g.role(ParameterRole::kAttention);
  g.linear("self_attn.q_proj", checked_mul(2, queries), d.width, bias);
  g.linear("self_attn.k_proj", keys, d.width, bias);
  g.linear("self_attn.v_proj", keys, d.width, bias);
  g.linear("self_attn.o_proj", d.width, queries, bias);
  g.norm("self_attn.q_norm", d.head_dim);
  g.norm("self_attn.k_norm", d.head_dim);
}

void qwen3_5(ConfigReader& reader, InventoryBuilder& g) {
  const bool bias = reader.flag("attention_bias");
  const DeltaSizes delta = read_delta(reader);
  Decoder d(reader, g, {});
  const std::vector<std::string> types = reader.texts("layer_types", d.layers);
  write_decoder(d, [&](std::int64_t i) {
    if (types[static_cast<std::size_t>(i)] == kFullAttention) {
      write_gated_attention(d, bias);
    } else {
      write_delta(d, delta, /*fused=*/false);
    }
    d.mlp();
    d.norms();
  });
}

void qwen3_5_moe(ConfigReader& reader, InventoryBuilder& g) {
  const bool bias = reader.flag("attention_bias");
  const DeltaSizes delta = read_delta(reader);
  const std::int64_t experts = reader.size("num_experts");
  const std::int64_t used = std::min(experts, reader.size("num_experts_per_tok"));
  const std::int64_t inner = reader.size("moe_intermediate_size");
  const std::int64_t shared = reader.size("shared_expert_intermediate_size");
  Decoder d(reader, g, {}, "");
  const std::vector<std::string> types = reader.texts("layer_types", d.layers);
  write_decoder(d, [&](std::int64_t i) {
    if (types[static_cast<std::size_t>(i)] == kFullAttention) {
      write_gated_attention(d, bias);
    } else {
      write_delta(d, delta, /*fused=*/false);
    }
    d.router("mlp.gate", experts);
    d.experts("mlp.experts", experts, inner, used);
    d.gated_mlp("mlp.shared_expert", shared, false, ParameterRole::kSharedExperts);
    g.linear("mlp.shared_expert_gate", 1, d.width);
    d.norms();
  });
}

void qwen3_next(ConfigReader& reader, InventoryBuilder& g) {
  const bool bias = reader.flag("attention_bias");
  const DeltaSizes delta = read_delta(reader);
  const std::int64_t experts = reader.count("num_experts");
  const std::int64_t used = std::min(experts, reader.size("num_experts_per_tok"));
  const std::int64_t inner = reader.size("moe_intermediate_size");
  const std::int64_t shared = reader.size("shared_expert_intermediate_size");
  const std::int64_t step = reader.derived_size("decoder_sparse_step");
  const nlohmann::json* dense = reader.complete("mlp_only_layers");
  Decoder d(reader, g, {});
  const std::vector<std::string> types = reader.texts("layer_types", d.layers);
  write_decoder(d, [&](std::int64_t i) {
    if (types[static_cast<std::size_t>(i)] == kFullAttention) {
      write_gated_attention(d, bias);
    } else {
      write_delta(d, delta, /*fused=*/true);
    }
    const bool listed = dense != nullptr &&
                        std::find(dense->begin(), dense->end(), nlohmann::json(i)) != dense->end();
    if (experts > 0 && !listed && (i + 1) % step == 0) {
      d.router("mlp.gate", experts);
      d.experts("mlp.experts", experts, inner, used);
      d.gated_mlp("mlp.shared_expert", shared, false, ParameterRole::kSharedExperts);
      g.linear("mlp.shared_expert_gate", 1, d.width);
    } else {
      d.mlp();
    }
    d.norms();
  });
}

constexpr std::array<InventoryFamily, 3> kDeltaHybrids = {{
    {"qwen3_5_moe_text", qwen3_5_moe, "Qwen3_5MoeForCausalLM"},
    {"qwen3_5_text", qwen3_5, "Qwen3_5ForCausalLM"},
    {"qwen3_next", qwen3_next, "Qwen3NextForCausalLM"},
}};

}  // namespace

const InventoryFamily* find_delta_hybrid(std::string_view model_type) {
  return find_in(kDeltaHybrids, model_type);
}

}  // namespace plimsoll::formats
