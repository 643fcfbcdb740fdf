#include "plimsoll/formats/config.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/class_config.hpp"
#include "plimsoll/formats/config_reader.hpp"
#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/json_values.hpp"

namespace plimsoll::formats {
namespace {

using network::Family;
using network::NetworkSpec;
using network::OpKind;
using nlohmann::json;

// Which config key a field of the spec came from, so that validate()'s complaint names the key.
using FieldKeys = std::span<const std::pair<std::string_view, std::string_view>>;

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kGpt2Keys = {{
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
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kLlamaKeys = {{
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
}};

OpKind read_activation(ConfigReader& reader, std::string_view key) {
  static const std::array<std::pair<std::string, OpKind>, 6> kNames = {{
      {"gelu", OpKind::kGelu},
      {"gelu_new", OpKind::kGeluTanh},
      {"gelu_pytorch_tanh", OpKind::kGeluTanh},
      {"silu", OpKind::kSilu},
      {"swish", OpKind::kSilu},
      {"relu", OpKind::kRelu},
  }};
  const std::string text = reader.noted_text(key);
  std::vector<std::string> names;
  for (const auto& [known, kind] : kNames) {
    if (known == text) return kind;
    names.push_back(known);
  }
  const std::string near = nearest_name(text.substr(0, 64), names);
  reader.refuse(json_step(key),
                fmt::format("{}, expected {}", json_value_text(text), fmt::join(names, ", ")),
                near.empty() ? "" : "nearest name: " + near);
  return OpKind::kGelu;
}

// Things that a config can ask for and that a plan leaves out; sizes of the model do not change.
void note_what_is_left_out(ConfigReader& reader) {
  if (reader.find("quantization_config") != nullptr) {
    reader.assume("quantization_config: present, planned with unquantised weights");
  }
  const json* architectures = reader.find("architectures");
  if (architectures == nullptr || !architectures->is_array()) return;
  for (const json& entry : *architectures) {
    const std::string name = entry.is_string() ? entry.get<std::string>() : "";
    if (name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel")) return;
  }
  reader.assume(fmt::format("architectures: {}, planned as a causal language model",
                            json_value_text(*architectures)));
}

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

NetworkSpec read_gpt2(ConfigReader& reader) {
  NetworkSpec spec;
  spec.family = Family::kGpt2;
  spec.architecture = network::gpt_architecture();
  spec.vocabulary = reader.size("vocab_size");
  spec.width = reader.size("n_embd");
  spec.layers = reader.size("n_layer");
  spec.heads = reader.size("n_head");
  spec.positions = reader.size("n_positions");
  spec.kv_heads = spec.heads;
  spec.head_dim = spec.width / spec.heads;
  spec.feed_forward = reader.size_or("n_inner", 4 * spec.width);
  spec.tied_head = reader.noted_flag("tie_word_embeddings");
  spec.attention_bias = true;
  spec.mlp_bias = true;
  spec.activation = read_activation(reader, "activation_function");
  spec.norm_eps = reader.positive("layer_norm_epsilon");
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) {
    spec.config_dropout = std::max(spec.config_dropout, reader.probability(key));
  }
  refuse_or_note_gpt2_variants(reader);
  return spec;
}

// transformers 5 keeps rotary settings in rope_parameters, older files in rope_scaling plus a
// rope_theta beside it; a theta inside wins over the one beside.
double read_rope_theta(ConfigReader& reader) {
  for (const char* home : {"rope_scaling", "rope_parameters"}) {
    const json* settings = reader.find(home);
    if (settings == nullptr) continue;
    const std::string path = json_step(home);
    if (!settings->is_object()) {
      reader.refuse(path, json_value_text(*settings) + ", expected an object");
      return 1;
    }
    for (const char* key : {"rope_type", "type"}) {
      const auto type = settings->find(key);
      if (type == settings->end() || !type->is_string() || *type == "default") continue;
      reader.assume(
          fmt::format("{}: type {}, planned with unscaled rotary positions "
                      "(no size depends on it)",
                      home, json_value_text(*type)));
      break;
    }
    const auto theta = settings->find("rope_theta");
    if (theta == settings->end() || theta->is_null()) continue;
    const auto number = as_positive(*theta, reader.where(path + "/rope_theta"));
    if (number) return *number;
    reader.refuse(path + "/rope_theta", number.error().what);
  }
  return reader.positive("rope_theta");
}

void read_llama_heads(ConfigReader& reader, NetworkSpec& spec) {
  spec.heads = reader.size("num_attention_heads");
  const bool all = reader.is_null("num_key_value_heads");
  spec.kv_heads =
      all ? spec.heads : reader.optional_size("num_key_value_heads").value_or(spec.heads);
  if (reader.find("num_key_value_heads") == nullptr) {
    reader.assume(fmt::format("num_key_value_heads: {}, {} {}", all ? "null" : "absent",
                              spec.kv_heads == spec.heads ? "as many as heads" : "class default",
                              spec.kv_heads));
  }
  spec.head_dim = reader.size_or("head_dim", spec.width / spec.heads);
  if (reader.find("head_dim") == nullptr && spec.width % spec.heads != 0) {
    reader.refuse("/num_attention_heads",
                  fmt::format("{} does not divide hidden_size {}", spec.heads, spec.width),
                  "give head_dim when heads * head_dim is not the width");
  }
}

NetworkSpec read_llama_like(ConfigReader& reader) {
  NetworkSpec spec;
  spec.family = Family::kLlama;
  spec.vocabulary = reader.size("vocab_size");
  spec.width = reader.size("hidden_size");
  spec.layers = reader.size("num_hidden_layers");
  read_llama_heads(reader, spec);
  spec.feed_forward = reader.size("intermediate_size");
  spec.positions = reader.size("max_position_embeddings");
  spec.tied_head = reader.noted_flag("tie_word_embeddings");
  spec.activation = read_activation(reader, "hidden_act");
  spec.norm_eps = reader.positive("rms_norm_eps");
  spec.rope_theta = read_rope_theta(reader);
  spec.config_dropout = reader.probability("attention_dropout");
  return spec;
}

NetworkSpec read_llama(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  spec.attention_bias = reader.flag("attention_bias");
  spec.mlp_bias = reader.flag("mlp_bias");
  return spec;
}

NetworkSpec read_mistral(ConfigReader& reader) {
  NetworkSpec spec = read_llama_like(reader);
  const auto window = reader.optional_size("sliding_window");
  if (window && *window < spec.positions) {
    reader.assume(
        fmt::format("sliding_window: {} of {} positions, planned as full causal "
                    "attention (windows are not used yet)",
                    *window, spec.positions));
  }
  return spec;
}

struct ModelType {
  std::string_view name;
  NetworkSpec (*read)(ConfigReader&);
  FieldKeys keys;
};

constexpr std::array<ModelType, 3> kModelTypes = {{
    {"gpt2", read_gpt2, kGpt2Keys},
    {"llama", read_llama, kLlamaKeys},
    {"mistral", read_mistral, kLlamaKeys},
}};

Result<const ModelType*> find_model_type(const ClassConfig& config) {
  for (const ModelType& type : kModelTypes) {
    if (type.name == config.model_type) return &type;
  }
  return fail(
      json_where(config.where, config.prefix + "/model_type"),
      fmt::format("the timeline of {} cannot be planned yet, expected one of {}",
                  json_value_text(config.model_type), fmt::join(planned_model_types(), ", ")),
      "`plimsoll params` counts its parameters");
}

// validate() speaks of fields; people wrote keys.
Error in_words_of_the_file(Error error, FieldKeys keys, const std::string& where) {
  for (const auto& [field, key] : keys) {
    if (field == error.where) {
      error.where = json_where(where, json_step(key));
      return error;
    }
  }
  error.where = where;
  return error;
}

}  // namespace

const std::vector<std::string>& planned_model_types() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const ModelType& type : kModelTypes) names.emplace_back(type.name);
    return names;
  }();
  return kNames;
}

Result<NetworkSpec> read_config(std::string_view json_text, std::string_view where) {
  const auto document = parse_json(json_text, where);
  if (!document) return tl::unexpected<Error>(document.error());
  const auto config = class_config(*document, where);
  if (!config) return tl::unexpected<Error>(config.error());
  return read_config(*config);
}

Result<NetworkSpec> read_config(const ClassConfig& config) {
  const auto type = find_model_type(config);
  if (!type) return tl::unexpected<Error>(type.error());
  ConfigReader reader(config);
  NetworkSpec spec = (*type)->read(reader);
  note_what_is_left_out(reader);
  if (reader.error()) return tl::unexpected<Error>(*reader.error());
  spec.model_type = (*type)->name;
  spec.title = config.where;
  spec.assumptions = reader.take_assumptions();
  if (auto valid = network::validate(spec); !valid) {
    return tl::unexpected<Error>(in_words_of_the_file(valid.error(), (*type)->keys, config.where));
  }
  return spec;
}

}  // namespace plimsoll::formats
