// Gemma 4: full-attention layers have heads of another size, late layers may reuse keys and values,
// every layer gets an embedding of its own.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/inventory/decoder.hpp"
#include "plimsoll/formats/inventory/families.hpp"

namespace plimsoll::formats {
namespace {

using nlohmann::json;

constexpr std::int64_t kFullHeadDim = 512;  // when the file is silent
constexpr std::size_t kMostOverrides = 1000;

class Gemma4 {
 public:
  Gemma4(ConfigReader& reader, InventoryBuilder& g)
      : d_(reader, g, style(reader)),
        g_(g),
        types_(reader.texts("layer_types", d_.layers)),
        full_head_dim_(reader.size_or("global_head_dim", kFullHeadDim)),
        values_are_keys_(reader.flag("attention_k_eq_v")),
        bias_(reader.flag("attention_bias")),
        per_layer_(reader.has("hidden_size_per_layer_input")
                       ? reader.count("hidden_size_per_layer_input")
                       : 0),
        per_layer_rows_(reader.size("vocab_size_per_layer_input")),
        first_shared_(d_.layers - std::min(d_.layers, reader.count("num_kv_shared_layers"))),
        double_mlp_(reader.flag("use_double_wide_mlp")),
        overrides_(reader.complete("per_layer_config")) {
    full_kv_heads_ =
        values_are_keys_ ? reader.size_or("num_global_key_value_heads", d_.kv_heads) : d_.kv_heads;
    if (reader.flag("enable_moe_block")) {
      experts_ = reader.size("num_experts");
      used_ = std::min(experts_, reader.size("top_k_experts"));
      expert_width_ = reader.size("moe_intermediate_size");
    }
  }

  void write() {
    write_decoder(d_, [&](std::int64_t i) { layer(i); });
    g_.enter("model.");
    for (const char* kind : {"full_attention", "sliding_attention"}) {
      const auto found = std::find(types_.begin(), types_.end(), kind);
      if (found == types_.end()) continue;
      d_.rotary(fmt::format("rotary_emb.{}_", kind), head_dim(found - types_.begin()));
    }
    if (per_layer_ == 0) return;
    const std::int64_t all = checked_mul(d_.layers, per_layer_);
    g_.embedding("embed_tokens_per_layer", per_layer_rows_, all, ParameterRole::kOtherEmbedding);
    g_.buffer("embed_tokens_per_layer.embed_scale", {});
    g_.role(ParameterRole::kOtherEmbedding);
    g_.linear("per_layer_model_projection", all, d_.width);
    g_.norm("per_layer_projection_norm", per_layer_);
  }

 private:
  static DecoderStyle style(ConfigReader& reader) {
    DecoderStyle style;
    style.qkv_bias = style.out_bias = reader.flag("attention_bias");
    style.scaled_embedding = true;
    style.rotary_buffers = false;
    style.norms = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                   "post_feedforward_layernorm"};
    return style;
  }

  bool full(std::int64_t layer) const {
    return types_[static_cast<std::size_t>(layer)] == "full_attention";
  }

  // What per_layer_config says for a layer; its keys are layer numbers, maybe with leading zeros.
  std::int64_t size_of(std::int64_t layer, const char* key, std::int64_t otherwise) const {
    if (overrides_ == nullptr || !overrides_->is_object()) return otherwise;
    for (const auto& item : overrides_->items()) {
      if (std::atoll(item.key().c_str()) != layer || !item.value().is_object()) continue;
      const auto value = item.value().find(key);
      if (value != item.value().end() && value->is_number_integer() && *value > 0 &&
          *value < (std::uint64_t{1} << 53U)) {
        return value->get<std::int64_t>();
      }
    }
    return otherwise;
  }

  std::int64_t head_dim(std::int64_t layer) const {
    const bool given = overrides_ != nullptr;
    return size_of(layer, "head_dim", full(layer) && !given ? full_head_dim_ : d_.head_dim);
  }

  std::int64_t kv_heads(std::int64_t layer) const {
    const bool given = overrides_ != nullptr;
    return size_of(layer, "num_key_value_heads",
                   full(layer) && !given ? full_kv_heads_ : d_.kv_heads);
  }

  void attention(std::int64_t layer) {
    const std::int64_t head = head_dim(layer);
    const std::int64_t queries = checked_mul(d_.heads, head);
    const std::int64_t keys = checked_mul(kv_heads(layer), head);
    g_.role(ParameterRole::kAttention);
    g_.linear("self_attn.q_proj", queries, d_.width, bias_);
    g_.norm("self_attn.q_norm", head);
    if (layer < first_shared_) {
      g_.norm("self_attn.k_norm", head);
      g_.linear("self_attn.k_proj", keys, d_.width, bias_);
      if (!(values_are_keys_ && full(layer))) {
        g_.linear("self_attn.v_proj", keys, d_.width, bias_);
      }
    }
    g_.linear("self_attn.o_proj", d_.width, queries, bias_);
  }

  void experts() {
    g_.role(ParameterRole::kRouter);
    g_.linear("router.proj", experts_, d_.width);
    g_.tensor("router.scale", {d_.width});
    g_.tensor("router.per_expert_scale", {experts_});
    d_.experts("experts", experts_, expert_width_, used_);
    for (const char* norm : {"post_feedforward_layernorm_1", "post_feedforward_layernorm_2",
                             "pre_feedforward_layernorm_2"}) {
      g_.norm(norm, d_.width);
    }
  }

  void layer(std::int64_t i) {
    attention(i);
    const std::int64_t inner =
        checked_mul(d_.feed_forward, double_mlp_ && i >= first_shared_ ? 2 : 1);
    d_.gated_mlp("mlp", inner, false, ParameterRole::kMlp);
    d_.norms();
    g_.buffer("layer_scalar", {1}, /*persistent=*/true);
    if (experts_ > 0) experts();
    if (per_layer_ == 0) return;
    g_.role(ParameterRole::kOtherEmbedding);
    g_.linear("per_layer_input_gate", per_layer_, d_.width);
    g_.linear("per_layer_projection", d_.width, per_layer_);
    g_.norm("post_per_layer_input_norm", d_.width);
  }

  Decoder d_;
  InventoryBuilder& g_;
  std::vector<std::string> types_;
  std::int64_t full_head_dim_;
  std::int64_t full_kv_heads_ = 1;
  bool values_are_keys_;
  bool bias_;
  std::int64_t per_layer_;  // width of the embedding that each layer gets; 0: none
  std::int64_t per_layer_rows_;
  std::int64_t first_shared_;  // layers from here on reuse keys and values
  bool double_mlp_;
  std::int64_t experts_ = 0;
  std::int64_t used_ = 0;
  std::int64_t expert_width_ = 1;
  const json* overrides_;
};

void gemma4(ConfigReader& reader, InventoryBuilder& g) {
  const json* overrides = reader.complete("per_layer_config");
  if (overrides != nullptr && overrides->size() > kMostOverrides) {
    reader.refuse_key("per_layer_config", fmt::format("{} layers, expected at most {}",
                                                      overrides->size(), kMostOverrides));
    return;
  }
  Gemma4(reader, g).write();
}

constexpr InventoryFamily kFamily = {"gemma4_text", gemma4, "Gemma4ForCausalLM"};

}  // namespace

const InventoryFamily* find_gemma4(std::string_view model_type) {
  return model_type == kFamily.model_type ? &kFamily : nullptr;
}

}  // namespace plimsoll::formats
