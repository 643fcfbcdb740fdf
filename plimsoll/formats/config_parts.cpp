#include "plimsoll/formats/config_parts.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/class_keys.hpp"
#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/json_values.hpp"
#include "plimsoll/formats/rope_parameters.hpp"

namespace plimsoll::formats {
namespace {

using network::LayerFacts;
using network::NetworkSpec;
using network::OpKind;
using nlohmann::json;

constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kLlamaKeys = {{
    {"width", "hidden_size"},
    {"layers", "num_hidden_layers"},
    {"heads", "num_attention_heads"},
    {"kv_heads", "num_key_value_heads"},
    {"head_dim", "head_dim"},
    {"feed_forward", "intermediate_size"},
    {"vocabulary", "vocab_size"},
    {"positions", "max_position_embeddings"},
    {"activation", "hidden_act"},
    {"norm_eps", "rms_norm_eps"},
    {"rope_theta", "rope_theta"},
    {"rotary_dim", "partial_rotary_factor"},
    {"window", "sliding_window"},
}};

struct Activation {
  const char* name;
  OpKind kind;
  bool squared;
};
constexpr std::array<Activation, 7> kActivations = {{
    {"gelu", OpKind::kGelu, false},
    {"gelu_new", OpKind::kGeluTanh, false},
    {"gelu_pytorch_tanh", OpKind::kGeluTanh, false},
    {"silu", OpKind::kSilu, false},
    {"swish", OpKind::kSilu, false},
    {"relu", OpKind::kRelu, false},
    {"relu2", OpKind::kRelu, true},
}};

// Facts of all layers, made when the first of them differs. validate() refuses more layers.
LayerFacts& facts_of(NetworkSpec& spec, std::int64_t layer) {
  if (spec.layer_facts.empty()) spec.layer_facts.resize(static_cast<std::size_t>(spec.layers));
  return spec.layer_facts[static_cast<std::size_t>(layer)];
}

void note_scaled(ConfigReader& reader, const char* home, const json& settings) {
  for (const char* key : {"rope_type", "type"}) {
    const auto type = settings.find(key);
    if (type == settings.end() || !type->is_string() || *type == "default") continue;
    reader.assume(
        fmt::format("{}: type {}, planned with unscaled rotary positions (no size depends on it)",
                    home, json_value_text(*type)));
    return;
  }
}

// transformers 5 keeps rotary settings in rope_parameters, older files in rope_scaling plus a
// rope_theta beside it; a theta inside wins over the one beside.
double read_theta(ConfigReader& reader) {
  for (const char* home : {"rope_scaling", "rope_parameters"}) {
    const json* settings = reader.find(home);
    if (settings == nullptr) continue;
    const std::string path = json_step(home);
    if (!settings->is_object()) {
      reader.refuse(path, json_value_text(*settings) + ", expected an object");
      return 1;
    }
    note_scaled(reader, home, *settings);
    const auto theta = settings->find("rope_theta");
    if (theta == settings->end() || theta->is_null()) continue;
    const auto number = as_positive(*theta, reader.where(path + "/rope_theta"));
    if (number) return *number;
    reader.refuse(path + "/rope_theta", number.error().what);
  }
  const json* complete = reader.complete("rope_parameters");
  const bool beside = reader.find("rope_theta") != nullptr;
  if (!beside && complete != nullptr && complete->is_object()) {
    return rope_settings(*complete).theta;
  }
  return reader.positive("rope_theta");
}

constexpr const char* kFull = "full_attention";
constexpr const char* kSliding = "sliding_attention";

// Kinds of layers may have a theta of their own.
void read_thetas_by_kind(ConfigReader& reader, NetworkSpec& spec, const json& settings) {
  if (settings.contains(kFull)) note_scaled(reader, "rope_parameters", settings.at(kFull));
  spec.rope_theta = rope_settings(settings, kFull).theta;
  const double local = rope_settings(settings, kSliding).theta;
  for (std::int64_t i = 0; has_layer_facts(spec) && i < spec.layers; ++i) {
    if (slides(reader, i) && local != spec.rope_theta) facts_of(spec, i).rope_theta = local;
  }
}

}  // namespace

FieldKeys llama_keys() { return kLlamaKeys; }

bool has_layer_facts(const NetworkSpec& spec) { return spec.layers <= kMostDerivedLayers; }

NetworkSpec read_common_sizes(ConfigReader& reader) {
  NetworkSpec spec;
  spec.family = network::Family::kDecoder;
  spec.vocabulary = reader.size("vocab_size");
  spec.width = reader.size("hidden_size");
  spec.layers = reader.size("num_hidden_layers");
  read_heads(reader, spec);
  spec.feed_forward = reader.size("intermediate_size");
  spec.positions = reader.size("max_position_embeddings");
  spec.tied_head = reader.noted_flag("tie_word_embeddings");
  spec.config_dropout = reader.probability("attention_dropout");
  return spec;
}

void read_heads(ConfigReader& reader, NetworkSpec& spec) {
  spec.heads = reader.size("num_attention_heads");
  spec.kv_heads = spec.heads;
  const bool grouped = reader.declares("num_key_value_heads");
  if (grouped && reader.complete("num_key_value_heads") != nullptr) {
    const bool all = reader.is_null("num_key_value_heads");
    if (!all) spec.kv_heads = reader.optional_size("num_key_value_heads").value_or(spec.heads);
    if (reader.find("num_key_value_heads") == nullptr) {
      reader.assume(fmt::format("num_key_value_heads: {}, {} {}", all ? "null" : "absent",
                                spec.kv_heads == spec.heads ? "as many as heads" : "class default",
                                spec.kv_heads));
    }
  }
  const std::int64_t share = spec.width / spec.heads;
  const bool own = reader.complete("head_dim") != nullptr;
  spec.head_dim = own ? reader.optional_size("head_dim").value_or(share) : share;
  const bool derived = reader.find("head_dim") == nullptr && spec.head_dim == share;
  if (derived && spec.width % spec.heads != 0) {
    reader.refuse("/num_attention_heads",
                  fmt::format("{} does not divide hidden_size {}", spec.heads, spec.width),
                  "give head_dim when heads * head_dim is not the width");
  }
}

void read_activation(ConfigReader& reader, NetworkSpec& spec, std::string_view key) {
  const std::string text = reader.noted_text(key);
  std::vector<std::string> names;
  for (const Activation& known : kActivations) {
    if (known.name == text) {
      spec.activation = known.kind;
      spec.architecture.squared_activation = known.squared;
      return;
    }
    names.emplace_back(known.name);
  }
  const std::string near = nearest_name(text.substr(0, 64), names);
  reader.refuse(json_step(key),
                fmt::format("{}, expected {}", json_value_text(text), fmt::join(names, ", ")),
                near.empty() ? "" : fmt::format("nearest name: {}", near));
}

void read_rotary(ConfigReader& reader, NetworkSpec& spec) {
  const json* settings = reader.complete("rope_parameters");
  const bool by_kind =
      settings != nullptr && (settings->contains(kFull) || settings->contains(kSliding));
  if (by_kind) {
    read_thetas_by_kind(reader, spec, *settings);
  } else {
    spec.rope_theta = read_theta(reader);
  }
  if (settings == nullptr) return;
  const double partial = rope_settings(*settings, kFull).partial;
  if (partial == 1) return;
  if (!(partial > 0 && partial < 1)) {
    reader.refuse("/partial_rotary_factor",
                  fmt::format("{}, expected a number above 0 and at most 1", partial));
    return;
  }
  spec.architecture.rotary_dim =
      static_cast<std::int64_t>(partial * static_cast<double>(spec.head_dim));
}

void read_window(ConfigReader& reader, NetworkSpec& spec) {
  const auto window = reader.optional_size("sliding_window");
  if (!window || *window >= spec.positions || !has_layer_facts(spec)) return;
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    facts_of(spec, i).window = *window;
  }
}

bool slides(ConfigReader& reader, std::int64_t layer) {
  const json* types = reader.complete("layer_types");
  const auto index = static_cast<std::size_t>(layer);
  return types != nullptr && types->is_array() && index < types->size() &&
         types->at(index) == kSliding;
}

void read_layer_types(ConfigReader& reader, NetworkSpec& spec) {
  const json* types = reader.complete("layer_types");
  if (types == nullptr || reader.error() || !has_layer_facts(spec)) return;
  if (!types->is_array() || types->size() != static_cast<std::size_t>(spec.layers)) {
    reader.refuse("/layer_types", fmt::format("{}, expected a list with an entry for each of the "
                                              "{} layers",
                                              json_value_text(*types), spec.layers));
    return;
  }
  const auto window = reader.optional_size("sliding_window");
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    const json& type = types->at(static_cast<std::size_t>(i));
    if (type == kSliding) {
      if (window && *window < spec.positions) facts_of(spec, i).window = *window;
    } else if (type != kFull) {
      reader.refuse(fmt::format("/layer_types/{}", i),
                    fmt::format("{}, expected {} or {}", json_value_text(type), kFull, kSliding));
      return;
    }
  }
}

void read_dropouts(ConfigReader& reader, NetworkSpec& spec,
                   std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    spec.config_dropout = std::max(spec.config_dropout, reader.probability(key));
  }
}

void use_layer_norm(NetworkSpec& spec, double eps, bool bias) {
  spec.architecture.norm = network::NormKind::kLayer;
  spec.architecture.norm_bias = bias;
  spec.norm_eps = eps;
}

}  // namespace plimsoll::formats
