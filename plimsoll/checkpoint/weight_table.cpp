#include "plimsoll/checkpoint/weight_table.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace plimsoll::checkpoint {
namespace {

using network::Family;
using network::NetworkSpec;

// {} is the layer's number. minigpt's names; gpt2's own are theirs.
struct GptRow {
  std::string_view minigpt;  // empty: has none
  std::string_view theirs;
  bool transposed = false;
};

constexpr GptRow kGptModel[] = {
    {"wte.weight", "transformer.wte.weight"},
    {"wpe.weight", "transformer.wpe.weight"},
    {"ln_f.weight", "transformer.ln_f.weight"},
    {"ln_f.bias", "transformer.ln_f.bias"},
    {"", "lm_head.weight"},
};
constexpr GptRow kGptLayer[] = {
    {"blocks.{}.ln1.weight", "transformer.h.{}.ln_1.weight"},
    {"blocks.{}.ln1.bias", "transformer.h.{}.ln_1.bias"},
    {"blocks.{}.attn.qkv.weight", "transformer.h.{}.attn.c_attn.weight", true},
    {"", "transformer.h.{}.attn.c_attn.bias"},
    {"blocks.{}.attn.proj.weight", "transformer.h.{}.attn.c_proj.weight", true},
    {"", "transformer.h.{}.attn.c_proj.bias"},
    {"blocks.{}.ln2.weight", "transformer.h.{}.ln_2.weight"},
    {"blocks.{}.ln2.bias", "transformer.h.{}.ln_2.bias"},
    {"blocks.{}.mlp.fc.weight", "transformer.h.{}.mlp.c_fc.weight", true},
    {"", "transformer.h.{}.mlp.c_fc.bias"},
    {"blocks.{}.mlp.proj.weight", "transformer.h.{}.mlp.c_proj.weight", true},
    {"", "transformer.h.{}.mlp.c_proj.bias"},
};

constexpr std::string_view kLlamaModel[] = {
    "model.embed_tokens.weight",
    "model.norm.weight",
    "lm_head.weight",
};
constexpr std::string_view kLlamaLayer[] = {
    "model.layers.{}.self_attn.q_proj.weight", "model.layers.{}.self_attn.q_proj.bias",
    "model.layers.{}.self_attn.k_proj.weight", "model.layers.{}.self_attn.k_proj.bias",
    "model.layers.{}.self_attn.v_proj.weight", "model.layers.{}.self_attn.v_proj.bias",
    "model.layers.{}.self_attn.o_proj.weight", "model.layers.{}.self_attn.o_proj.bias",
    "model.layers.{}.mlp.gate_proj.weight",    "model.layers.{}.mlp.gate_proj.bias",
    "model.layers.{}.mlp.up_proj.weight",      "model.layers.{}.mlp.up_proj.bias",
    "model.layers.{}.mlp.down_proj.weight",    "model.layers.{}.mlp.down_proj.bias",
    "model.layers.{}.input_layernorm.weight",  "model.layers.{}.post_attention_layernorm.weight",
};

std::string numbered(std::string_view pattern, std::int64_t layer) {
  return fmt::format(fmt::runtime(pattern), layer);
}

void add_gpt(WeightTable& table, std::span<const GptRow> rows, bool minigpt, std::int64_t layer) {
  for (const GptRow& row : rows) {
    const std::string_view ours = minigpt ? row.minigpt : row.theirs;
    if (ours.empty()) continue;
    table.names.push_back({numbered(ours, layer), numbered(row.theirs, layer), row.transposed});
  }
}

WeightTable gpt_table(const NetworkSpec& spec) {
  WeightTable table;
  table.base = "transformer.";
  const bool minigpt = spec.family == Family::kMiniGpt;
  add_gpt(table, kGptModel, minigpt, 0);
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    add_gpt(table, kGptLayer, minigpt, i);
    if (!minigpt) continue;
    const std::string layer = numbered("transformer.h.{}.", i);
    table.zeros.push_back({layer + "attn.c_attn.bias", {3 * spec.width}});
    table.zeros.push_back({layer + "attn.c_proj.bias", {spec.width}});
    table.zeros.push_back({layer + "mlp.c_fc.bias", {spec.feed_forward}});
    table.zeros.push_back({layer + "mlp.c_proj.bias", {spec.width}});
  }
  return table;
}

WeightTable llama_table(const NetworkSpec& spec) {
  WeightTable table;
  table.base = "model.";
  const auto add = [&](std::string_view pattern, std::int64_t layer) {
    const std::string name = numbered(pattern, layer);
    table.names.push_back({name, name});
  };
  for (std::string_view pattern : kLlamaModel) add(pattern, 0);
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    for (std::string_view pattern : kLlamaLayer) add(pattern, i);
  }
  return table;
}

}  // namespace

const WeightName* WeightTable::find(std::string_view ours) const {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const WeightName& name) { return name.ours == ours; });
  return found == names.end() ? nullptr : &*found;
}

Result<WeightTable> weight_table(const NetworkSpec& spec) {
  if (spec.family == Family::kMiniGpt || spec.family == Family::kGpt2) return gpt_table(spec);
  const bool llama = spec.model_type == "llama" || spec.model_type == "mistral";
  if (spec.family == Family::kLlama && llama) return llama_table(spec);
  const std::string type =
      spec.model_type.empty() ? std::string(name(spec.family)) : spec.model_type;
  return fail(spec.title,
              fmt::format("weights of {} models have no table of names in this version, "
                          "expected gpt2, llama, mistral or minigpt",
                          type));
}

bool is_adapter(std::string_view ours) {
  return ours.ends_with(".lora_A.weight") || ours.ends_with(".lora_B.weight");
}

bool is_no_parameter(const NetworkSpec& spec, std::string_view theirs) {
  if (theirs == "lm_head.weight") return spec.tied_head;
  return theirs.ends_with(".attn.bias") || theirs.ends_with(".attn.masked_bias") ||
         theirs.ends_with(".rotary_emb.inv_freq");
}

}  // namespace plimsoll::checkpoint
