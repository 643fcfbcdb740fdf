// Which kind each layer is, as the classes of transformers 5 decide it when the file does not say.
#include <algorithm>
#include <array>
#include <string>

#include "plimsoll/formats/class_rules.hpp"

namespace plimsoll::formats {
namespace {

using nlohmann::json;
using Rule = void (*)(ClassKeys&, std::int64_t layers);

constexpr const char* kFull = "full_attention";
constexpr const char* kSliding = "sliding_attention";
constexpr const char* kLinear = "linear_attention";

// One value a layer, from its index.
template <class OfLayer>
void set_layers(ClassKeys& keys, std::string_view key, std::int64_t layers, OfLayer of_layer) {
  json list = json::array();
  for (std::int64_t i = 0; i < layers; ++i) list.push_back(of_layer(i));
  keys.set(key, std::move(list));
}

// Every `period`-th layer is `rare`, the others `common`.
void set_period(ClassKeys& keys, std::int64_t layers, std::int64_t period, const char* common,
                const char* rare) {
  if (keys.has("layer_types")) return;
  set_layers(keys, "layer_types", layers,
             [&](std::int64_t i) { return (i + 1) % period != 0 ? common : rare; });
}

void cohere2(ClassKeys& keys, std::int64_t layers) {
  set_period(keys, layers, keys.size("sliding_window_pattern").value_or(4), kSliding, kFull);
}

void gemma3(ClassKeys& keys, std::int64_t layers) {
  set_period(keys, layers, keys.size("sliding_window_pattern").value_or(6), kSliding, kFull);
}

void every_second_full(ClassKeys& keys, std::int64_t layers) {
  set_period(keys, layers, 2, kSliding, kFull);
}

void every_fourth_full(ClassKeys& keys, std::int64_t layers) {
  set_period(keys, layers, 4, kSliding, kFull);
}

void every_second_linear(ClassKeys& keys, std::int64_t layers) {
  set_period(keys, layers, 2, kFull, kLinear);
}

void linear_between_full(ClassKeys& keys, std::int64_t layers) {
  set_period(keys, layers, keys.size("full_attention_interval").value_or(4), kLinear, kFull);
}

void all_linear(ClassKeys& keys, std::int64_t layers) { set_period(keys, layers, 1, "", kLinear); }

void exaone4(ClassKeys& keys, std::int64_t layers) {
  const auto pattern = keys.size("sliding_window_pattern");
  if (pattern) set_period(keys, layers, *pattern, kSliding, kFull);
}

// The last layer attends to everything, whatever the file says.
void gemma4(ClassKeys& keys, std::int64_t layers) {
  set_period(keys, layers, 6, kSliding, kFull);
  const json* types = keys.find("layer_types");
  if (!types->is_array() || types->empty()) return;
  json list = *types;
  list.back() = kFull;
  keys.set("layer_types", std::move(list));
}

void window_from_layer(ClassKeys& keys, std::int64_t layers) {
  if (keys.has("layer_types")) return;
  const bool window = keys.has("sliding_window");
  const std::int64_t first = keys.count("max_window_layers").value_or(layers);
  set_layers(keys, "layer_types", layers,
             [&](std::int64_t i) { return window && i >= first ? kSliding : kFull; });
}

void qwen2_moe(ClassKeys& keys, std::int64_t layers) {
  if (keys.has("layer_types")) return;
  const bool window = keys.flag("use_sliding_window");
  const std::int64_t end = keys.count("max_window_layers").value_or(layers);
  set_layers(keys, "layer_types", layers, [&](std::int64_t i) {
    return window && i < end && (i + 1) % 2 != 0 ? kSliding : kFull;
  });
}

void ministral(ClassKeys& keys, std::int64_t layers) {
  set_period(keys, layers, 1, "", keys.has("sliding_window") ? kSliding : kFull);
}

void modernbert(ClassKeys& keys, std::int64_t layers) {
  if (keys.has("layer_types")) return;
  const std::int64_t period = keys.size("global_attn_every_n_layers").value_or(3);
  set_layers(keys, "layer_types", layers,
             [&](std::int64_t i) { return i % period != 0 ? kSliding : kFull; });
}

// Every fourth layer has no rotary positions.
void set_rotary_layers(ClassKeys& keys, std::int64_t layers) {
  const std::int64_t period = keys.size("no_rope_layer_interval").value_or(4);
  const json* given = keys.find("no_rope_layers");
  if (given != nullptr && !(given->is_array() && given->empty())) return;
  set_layers(keys, "no_rope_layers", layers,
             [&](std::int64_t i) { return (i + 1) % period != 0 ? 1 : 0; });
}

bool is_rotary(const ClassKeys& keys, std::int64_t layer) {
  const json* list = keys.find("no_rope_layers");
  const auto index = static_cast<std::size_t>(layer);
  return list == nullptr || !list->is_array() || index >= list->size() || list->at(index) != 0;
}

void smollm3(ClassKeys& keys, std::int64_t layers) {
  set_rotary_layers(keys, layers);
  if (keys.has("layer_types")) return;
  const bool window = keys.flag("use_sliding_window") && keys.has("sliding_window");
  set_layers(keys, "layer_types", layers,
             [&](std::int64_t i) { return window && !is_rotary(keys, i) ? kSliding : kFull; });
}

void llama4(ClassKeys& keys, std::int64_t layers) {
  set_rotary_layers(keys, layers);
  if (!keys.has("moe_layers")) {
    const std::int64_t step = keys.size("interleave_moe_layer_step").value_or(1);
    json list = json::array();
    for (std::int64_t i = step - 1; i < layers; i += step) list.push_back(i);
    keys.set("moe_layers", std::move(list));
  }
  if (keys.has("layer_types")) return;
  const bool chunked = keys.has("attention_chunk_size");
  set_layers(keys, "layer_types", layers, [&](std::int64_t i) {
    return chunked && is_rotary(keys, i) ? "chunked_attention" : kFull;
  });
}

void lfm2(ClassKeys& keys, std::int64_t layers) {
  if (keys.has("layer_types")) return;
  if (!keys.has("full_attn_idxs")) {
    set_layers(keys, "full_attn_idxs", layers, [](std::int64_t i) { return i; });
  }
  const json full = *keys.find("full_attn_idxs");
  set_layers(keys, "layer_types", layers, [&](std::int64_t i) {
    return std::find(full.begin(), full.end(), json(i)) != full.end() ? kFull : "conv";
  });
}

// Published files list layers from 1 in a nested object.
void kimi_linear(ClassKeys& keys, std::int64_t layers) {
  const json* home = keys.find("linear_attn_config");
  const bool listed = home != nullptr && home->is_object() && home->contains("full_attn_layers");
  const json full = listed ? home->at("full_attn_layers") : json();
  if (!keys.has("layer_types")) {
    set_layers(keys, "layer_types", layers, [&](std::int64_t i) {
      if (!listed) return i != 0 && i % 4 == 0 ? kFull : kLinear;
      return std::find(full.begin(), full.end(), json(i + 1)) != full.end() ? kFull : kLinear;
    });
  }
  if (keys.has("mlp_layer_types")) return;
  const std::int64_t dense = keys.count("first_k_dense_replace").value_or(1);
  set_layers(keys, "mlp_layer_types", layers,
             [&](std::int64_t i) { return i < dense ? "dense" : "sparse"; });
}

// [[["global", "local"], 12]]: the inner list twelve times over.
void gpt_neo(ClassKeys& keys, std::int64_t layers) {
  if (!keys.has("attention_types")) {
    keys.set("attention_types", json::parse(R"([[["global", "local"], 12]])"));
  }
  const json* types = keys.find("attention_types");
  if (!types->is_array()) return;
  json list = json::array();
  for (const json& item : *types) {
    const bool well_formed = item.is_array() && item.size() == 2 && item.at(0).is_array() &&
                             item.at(1).is_number_integer() && item.at(1) >= 0;
    if (!well_formed) return;
    const auto times = std::min<std::uint64_t>(item.at(1).get<std::uint64_t>(), kMostDerivedLayers);
    for (std::uint64_t i = 0; i < times; ++i) {
      for (const json& type : item.at(0)) list.push_back(type);
      if (list.size() > static_cast<std::size_t>(layers)) return;
    }
  }
  keys.set("attention_layers", std::move(list));
}

constexpr std::array<std::pair<std::string_view, Rule>, 24> kRules = {{
    {"cohere2", cohere2},
    {"dots1", window_from_layer},
    {"exaone4", exaone4},
    {"gemma2", every_second_full},
    {"gemma3_text", gemma3},
    {"gemma4_text", gemma4},
    {"gpt_neo", gpt_neo},
    {"gpt_oss", every_second_full},
    {"granitemoehybrid", all_linear},
    {"kimi_linear", kimi_linear},
    {"lfm2", lfm2},
    {"llama4_text", llama4},
    {"minimax", every_second_linear},
    {"ministral", ministral},
    {"modernbert", modernbert},
    {"olmo3", every_fourth_full},
    {"qwen2", window_from_layer},
    {"qwen2_moe", qwen2_moe},
    {"qwen3", window_from_layer},
    {"qwen3_5_moe_text", linear_between_full},
    {"qwen3_5_text", linear_between_full},
    {"qwen3_next", linear_between_full},
    {"smollm3", smollm3},
    {"vaultgemma", every_second_full},
}};

// Older files call the kinds of layers otherwise.
void modern_names(ClassKeys& keys) {
  const json* types = keys.find("layer_types");
  if (types == nullptr || !types->is_array()) return;
  json list = *types;
  for (json& type : list) {
    if (type == "mamba") type = kLinear;
    if (type == "attention") type = kFull;
  }
  keys.set("layer_types", std::move(list));
}

}  // namespace

void derive_layers(std::string_view model_type, ClassKeys& keys) {
  const auto* rule = std::find_if(kRules.begin(), kRules.end(),
                                  [&](const auto& entry) { return entry.first == model_type; });
  const auto layers = keys.size(keys.declares("num_layers") ? "num_layers" : "num_hidden_layers");
  if (rule != kRules.end() && layers && *layers <= kMostDerivedLayers) rule->second(keys, *layers);
  modern_names(keys);
}

}  // namespace plimsoll::formats
