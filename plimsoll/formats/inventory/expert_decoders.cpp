// Decoders whose MLPs are experts, in all layers or behind dense ones; latent attention.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/inventory/decoder.hpp"
#include "plimsoll/formats/inventory/families.hpp"
#include "plimsoll/formats/inventory/latent_attention.hpp"

namespace plimsoll::formats {
namespace {

// How many experts there are, how many a token uses, and their width.
struct Experts {
  std::int64_t count = 1;
  std::int64_t used = 1;
  std::int64_t inner = 1;
};

Experts read_experts(ConfigReader& reader, std::string_view count_key, std::string_view used_key,
                     std::string_view inner_key) {
  Experts experts{reader.size(count_key), reader.size(used_key), reader.size(inner_key)};
  if (experts.used > experts.count) {
    reader.refuse_key(used_key, fmt::format("{} of {} experts, expected at most {}", experts.used,
                                            experts.count, experts.count));
  }
  return experts;
}

void write_experts(Decoder& d, const Experts& e, std::string_view router) {
  d.router(router, e.count);
  d.experts("mlp.experts", e.count, e.inner, e.used);
}

void mixtral(ConfigReader& reader, InventoryBuilder& g) {
  const Experts e =
      read_experts(reader, "num_local_experts", "num_experts_per_tok", "intermediate_size");
  Decoder d(reader, g, {}, "");
  write_decoder(d, [&](std::int64_t) {
    d.attention();
    write_experts(d, e, "mlp.gate");
    d.norms();
  });
}

void minimax_m2(ConfigReader& reader, InventoryBuilder& g) {
  const Experts e =
      read_experts(reader, "num_local_experts", "num_experts_per_tok", "intermediate_size");
  DecoderStyle style;
  style.qk_norm = QkNorm::kWidth;
  Decoder d(reader, g, style, "");
  write_decoder(d, [&](std::int64_t) {
    d.attention();
    write_experts(d, e, "mlp.gate");
    g.buffer("mlp.e_score_correction_bias", {e.count}, /*persistent=*/true);
    d.norms();
  });
}

void write_olmoe(ConfigReader& reader, InventoryBuilder& g, std::vector<std::string_view> norms) {
  const Experts e = read_experts(reader, "num_experts", "num_experts_per_tok", "intermediate_size");
  DecoderStyle style;
  style.qkv_bias = style.out_bias = reader.flag("attention_bias");
  style.qk_norm = QkNorm::kWidth;
  style.norms = std::move(norms);
  Decoder d(reader, g, style, "");
  write_decoder(d, [&](std::int64_t) {
    d.attention();
    write_experts(d, e, "mlp.gate");
    d.norms();
  });
}

void olmoe(ConfigReader& reader, InventoryBuilder& g) {
  write_olmoe(reader, g, {"input_layernorm", "post_attention_layernorm"});
}

void flex_olmo(ConfigReader& reader, InventoryBuilder& g) {
  write_olmoe(reader, g, {"post_attention_layernorm", "post_feedforward_layernorm"});
}

void phimoe(ConfigReader& reader, InventoryBuilder& g) {
  const Experts e =
      read_experts(reader, "num_local_experts", "num_experts_per_tok", "intermediate_size");
  DecoderStyle style;
  style.qkv_bias = style.out_bias = reader.flag("attention_bias");
  style.head_bias = reader.flag("lm_head_bias");
  style.norm_bias = true;
  Decoder d(reader, g, style, "");
  write_decoder(d, [&](std::int64_t) {
    d.attention();
    write_experts(d, e, "mlp.router");
    d.norms();
  });
}

// Which layers have experts: every `decoder_sparse_step`-th, unless it is listed as dense.
class SparseLayers {
 public:
  explicit SparseLayers(ConfigReader& reader)
      : step_(reader.derived_size("decoder_sparse_step")),
        dense_(reader.complete("mlp_only_layers")) {}

  bool operator()(std::int64_t layer) const {
    if ((layer + 1) % step_ != 0) return false;
    return dense_ == nullptr || !dense_->is_array() ||
           std::find(dense_->begin(), dense_->end(), nlohmann::json(layer)) == dense_->end();
  }

 private:
  std::int64_t step_;
  const nlohmann::json* dense_;
};

void qwen2_moe(ConfigReader& reader, InventoryBuilder& g) {
  const Experts e =
      read_experts(reader, "num_experts", "num_experts_per_tok", "moe_intermediate_size");
  const std::int64_t shared = reader.size("shared_expert_intermediate_size");
  DecoderStyle style;
  style.qkv_bias = reader.flag("qkv_bias");
  Decoder d(reader, g, style);
  const SparseLayers sparse(reader);
  write_decoder(d, [&](std::int64_t i) {
    d.attention();
    if (sparse(i)) {
      write_experts(d, e, "mlp.gate");
      d.gated_mlp("mlp.shared_expert", shared, false, ParameterRole::kSharedExperts);
      g.linear("mlp.shared_expert_gate", 1, d.width);
    } else {
      d.mlp();
    }
    d.norms();
  });
}

void qwen3_moe(ConfigReader& reader, InventoryBuilder& g) {
  const Experts e =
      read_experts(reader, "num_local_experts", "num_experts_per_tok", "moe_intermediate_size");
  DecoderStyle style;
  style.qkv_bias = style.out_bias = reader.flag("attention_bias");
  style.qk_norm = QkNorm::kHead;
  Decoder d(reader, g, style);
  const SparseLayers sparse(reader);
  write_decoder(d, [&](std::int64_t i) {
    d.attention();
    if (sparse(i)) {
      write_experts(d, e, "mlp.gate");
    } else {
      d.mlp();
    }
    d.norms();
  });
}

// Experts are stored [in, out], with biases; each head has a sink.
void gpt_oss(ConfigReader& reader, InventoryBuilder& g) {
  const Experts e =
      read_experts(reader, "num_local_experts", "num_experts_per_tok", "intermediate_size");
  DecoderStyle style;
  style.qkv_bias = style.out_bias = reader.flag("attention_bias");
  Decoder d(reader, g, style, "");
  write_decoder(d, [&](std::int64_t) {
    g.role(ParameterRole::kAttention);
    g.tensor("self_attn.sinks", {d.heads});
    d.attention();
    d.router("mlp.router", e.count, true);
    const std::int64_t twice = checked_mul(2, e.inner);
    g.experts("mlp.experts.gate_up_proj", {e.count, d.width, twice}, e.used);
    g.experts("mlp.experts.gate_up_proj_bias", {e.count, twice}, e.used);
    g.experts("mlp.experts.down_proj", {e.count, e.inner, d.width}, e.used);
    g.experts("mlp.experts.down_proj_bias", {e.count, d.width}, e.used);
    d.norms();
  });
}

void write_granite(ConfigReader& reader, InventoryBuilder& g, std::int64_t shared) {
  const Experts e =
      read_experts(reader, "num_local_experts", "num_experts_per_tok", "intermediate_size");
  DecoderStyle style;
  style.qkv_bias = style.out_bias = reader.flag("attention_bias");
  Decoder d(reader, g, style, "");
  write_decoder(d, [&](std::int64_t) {
    d.attention();
    d.router("block_sparse_moe.router", e.count);
    d.experts("block_sparse_moe.experts", e.count, e.inner, e.used);
    if (shared > 0) {
      g.role(ParameterRole::kSharedExperts);
      g.linear("shared_mlp.input_linear", checked_mul(2, shared), d.width);
      g.linear("shared_mlp.output_linear", d.width, shared);
    }
    d.norms();
  });
}

void granitemoe(ConfigReader& reader, InventoryBuilder& g) { write_granite(reader, g, 0); }

void granitemoeshared(ConfigReader& reader, InventoryBuilder& g) {
  write_granite(reader, g, reader.count("shared_intermediate_size"));
}

// Experts behind `first_k_dense_replace` dense layers, and experts that every token uses.
struct LateExperts {
  Experts routed;
  std::int64_t shared = 0;  // width of all shared experts together
  std::int64_t dense_layers = 0;
  bool correction = true;  // a bias that steers the choice, kept as a buffer
};

LateExperts read_late_experts(ConfigReader& reader) {
  LateExperts late;
  late.routed =
      read_experts(reader, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size");
  late.shared = checked_mul(reader.has("n_shared_experts") ? reader.count("n_shared_experts") : 0,
                            late.routed.inner);
  late.dense_layers = reader.count("first_k_dense_replace");
  return late;
}

void write_late_experts(Decoder& d, const LateExperts& late, std::int64_t layer) {
  if (layer < late.dense_layers) {
    d.gated_mlp("mlp", d.feed_forward, d.style.mlp_bias, ParameterRole::kMlp);
    return;
  }
  write_experts(d, late.routed, "mlp.gate");
  if (late.correction) {
    d.g.buffer("mlp.gate.e_score_correction_bias", {late.routed.count}, /*persistent=*/true);
  }
  if (late.shared == 0) return;
  d.gated_mlp("mlp.shared_experts", late.shared, d.style.mlp_bias, ParameterRole::kSharedExperts);
}

void dots1(ConfigReader& reader, InventoryBuilder& g) {
  const LateExperts late = read_late_experts(reader);
  DecoderStyle style;
  style.qkv_bias = style.out_bias = reader.flag("attention_bias");
  style.qk_norm = QkNorm::kHead;
  Decoder d(reader, g, style);
  write_decoder(d, [&](std::int64_t i) {
    d.attention();
    write_late_experts(d, late, i);
    d.norms();
  });
}

void glm4_moe(ConfigReader& reader, InventoryBuilder& g) {
  const LateExperts late = read_late_experts(reader);
  DecoderStyle style;
  style.qkv_bias = reader.flag("attention_bias");
  if (reader.flag("use_qk_norm")) style.qk_norm = QkNorm::kHead;
  Decoder d(reader, g, style);
  write_decoder(d, [&](std::int64_t i) {
    d.attention();
    write_late_experts(d, late, i);
    d.norms();
  });
}

void deepseek_v2(ConfigReader& reader, InventoryBuilder& g) {
  LateExperts late = read_late_experts(reader);
  late.correction = false;
  const LatentAttention attention(reader);
  DecoderStyle style;
  style.mlp_bias = reader.flag("mlp_bias");
  Decoder d(reader, g, style);
  write_decoder(d, [&](std::int64_t i) {
    attention.write(d);
    write_late_experts(d, late, i);
    d.norms();
  });
}

void deepseek_v3(ConfigReader& reader, InventoryBuilder& g) {
  const LateExperts late = read_late_experts(reader);
  const LatentAttention attention(reader);
  Decoder d(reader, g, {});
  write_decoder(d, [&](std::int64_t i) {
    attention.write(d);
    write_late_experts(d, late, i);
    d.norms();
  });
}

void minicpm3(ConfigReader& reader, InventoryBuilder& g) {
  const LatentAttention attention(reader);
  DecoderStyle style;
  style.mlp_bias = reader.flag("mlp_bias");
  style.scaled_embedding = true;
  Decoder d(reader, g, style);
  write_decoder(d, [&](std::int64_t) {
    attention.write(d);
    d.mlp();
    d.norms();
  });
}

// Experts in the listed layers, stored [in, out], beside one that every token uses.
void llama4(ConfigReader& reader, InventoryBuilder& g) {
  const Experts e =
      read_experts(reader, "num_local_experts", "num_experts_per_tok", "intermediate_size");
  const std::int64_t dense = reader.size("intermediate_size_mlp");
  const nlohmann::json* listed = reader.complete("moe_layers");
  DecoderStyle style;
  style.qkv_bias = style.out_bias = reader.flag("attention_bias");
  Decoder d(reader, g, style, "");
  write_decoder(d, [&](std::int64_t i) {
    d.attention();
    const bool sparse = listed != nullptr && std::find(listed->begin(), listed->end(),
                                                       nlohmann::json(i)) != listed->end();
    if (sparse) {
      g.experts("feed_forward.experts.gate_up_proj", {e.count, d.width, checked_mul(2, e.inner)},
                e.used);
      g.experts("feed_forward.experts.down_proj", {e.count, e.inner, d.width}, e.used);
      d.router("feed_forward.router", e.count);
      d.gated_mlp("feed_forward.shared_expert", e.inner, false, ParameterRole::kSharedExperts);
    } else {
      d.gated_mlp("feed_forward", dense, false, ParameterRole::kMlp);
    }
    d.norms();
  });
}

// Experts in every `moe_layer_interval`-th layer between two bounds; the bias that steers the choice is
// a parameter.
void ernie_moe(ConfigReader& reader, InventoryBuilder& g) {
  const Experts e = read_experts(reader, "moe_num_experts", "moe_k", "moe_intermediate_size");
  const std::int64_t shared = checked_mul(reader.count("moe_num_shared_experts"), e.inner);
  const std::int64_t first = reader.count("moe_layer_start_index");
  const std::int64_t last = reader.count("moe_layer_end_index");
  const std::int64_t interval = reader.size("moe_layer_interval");
  DecoderStyle style;
  style.qkv_bias = style.out_bias = style.mlp_bias = style.head_bias = reader.flag("use_bias");
  Decoder d(reader, g, style);
  write_decoder(d, [&](std::int64_t i) {
    d.attention();
    if ((i + 1) % interval == 0 && i >= first && i <= last) {
      write_experts(d, e, "mlp.gate");
      g.tensor("mlp.gate.moe_statics.e_score_correction_bias", {1, e.count});
      if (shared > 0) {
        d.gated_mlp("mlp.shared_experts", shared, d.style.mlp_bias, ParameterRole::kSharedExperts);
      }
    } else {
      d.mlp();
    }
    d.norms();
  });
}

constexpr std::array<InventoryFamily, 17> kExpertDecoders = {{
    {"deepseek_v2", deepseek_v2, "DeepseekV2ForCausalLM"},
    {"deepseek_v3", deepseek_v3, "DeepseekV3ForCausalLM"},
    {"dots1", dots1, "Dots1ForCausalLM"},
    {"ernie4_5_moe", ernie_moe, "Ernie4_5_MoeForCausalLM"},
    {"flex_olmo", flex_olmo, "FlexOlmoForCausalLM"},
    {"glm4_moe", glm4_moe, "Glm4MoeForCausalLM"},
    {"gpt_oss", gpt_oss, "GptOssForCausalLM"},
    {"granitemoe", granitemoe, "GraniteMoeForCausalLM"},
    {"granitemoeshared", granitemoeshared, "GraniteMoeSharedForCausalLM"},
    {"llama4_text", llama4, "Llama4ForCausalLM"},
    {"minicpm3", minicpm3, "MiniCPM3ForCausalLM"},
    {"minimax_m2", minimax_m2, "MiniMaxM2ForCausalLM"},
    {"mixtral", mixtral, "MixtralForCausalLM"},
    {"olmoe", olmoe, "OlmoeForCausalLM"},
    {"phimoe", phimoe, "PhimoeForCausalLM"},
    {"qwen2_moe", qwen2_moe, "Qwen2MoeForCausalLM"},
    {"qwen3_moe", qwen3_moe, "Qwen3MoeForCausalLM"},
}};

}  // namespace

const InventoryFamily* find_expert_decoder(std::string_view model_type) {
  return find_in(kExpertDecoders, model_type);
}

}  // namespace plimsoll::formats
