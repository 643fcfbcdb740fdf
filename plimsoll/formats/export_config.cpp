#include "plimsoll/formats/export_config.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/json_text.hpp"

namespace plimsoll::formats {
namespace {

using network::DType;
using network::Family;
using network::NetworkSpec;
using network::OpKind;
using Json = nlohmann::ordered_json;

std::string activation_name(OpKind kind) {
  switch (kind) {
    case OpKind::kGelu:
      return "gelu";
    case OpKind::kGeluTanh:
      return "gelu_new";
    case OpKind::kSilu:
      return "silu";
    case OpKind::kRelu:
      return "relu";
    default:
      check(false, "an activation that no config has");
      return "";
  }
}

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "float64";
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    default:
      check(false, "weights of no floating type");
      return "";
  }
}

// As the config spells it, so that transformers takes the same one of several that mean the same.
std::string activation(const NetworkSpec& spec, const nlohmann::json& given, const char* key) {
  if (given.contains(key) && given[key].is_string()) return given[key].get<std::string>();
  return activation_name(spec.activation);
}

void add_gpt2(Json& json, const NetworkSpec& spec, const nlohmann::json& given) {
  json["vocab_size"] = spec.vocabulary;
  json["n_positions"] = spec.positions;
  json["n_embd"] = spec.width;
  json["n_layer"] = spec.layers;
  json["n_head"] = spec.heads;
  json["n_inner"] = spec.feed_forward;
  json["activation_function"] = activation(spec, given, "activation_function");
  json["layer_norm_epsilon"] = spec.norm_eps;
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) json[key] = 0.0;
  json["scale_attn_weights"] = true;
  json["scale_attn_by_inverse_layer_idx"] = false;
  json["reorder_and_upcast_attn"] = false;
}

// transformers 4 reads rope_theta, transformers 5 rope_parameters.
void add_llama(Json& json, const NetworkSpec& spec, const nlohmann::json& given) {
  json["vocab_size"] = spec.vocabulary;
  json["max_position_embeddings"] = spec.positions;
  json["hidden_size"] = spec.width;
  json["intermediate_size"] = spec.feed_forward;
  json["num_hidden_layers"] = spec.layers;
  json["num_attention_heads"] = spec.heads;
  json["num_key_value_heads"] = spec.kv_heads;
  json["head_dim"] = spec.head_dim;
  json["hidden_act"] = activation(spec, given, "hidden_act");
  json["rms_norm_eps"] = spec.norm_eps;
  json["rope_theta"] = spec.rope_theta;
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", spec.rope_theta}};
  json["attention_dropout"] = 0.0;
}

// The config that the model was described by; none: an empty object.
nlohmann::json config_of(const std::string& described) {
  if (described.starts_with('{')) {
    auto document = parse_json(described, "config");
    if (document && document->is_object()) return *std::move(document);
  }
  return nlohmann::json::object();
}

}  // namespace

Result<std::string> export_config(const NetworkSpec& spec, const std::string& described,
                                  DType dtype) {
  Json json;
  const nlohmann::json given = config_of(described);
  const bool gpt = spec.family == Family::kGpt2 || spec.family == Family::kMiniGpt;
  const bool mistral = spec.model_type == "mistral";
  if (!gpt && !(spec.family == Family::kLlama && (mistral || spec.model_type == "llama"))) {
    return fail(spec.title,
                fmt::format("{} models are not written for transformers in this version, expected "
                            "gpt2, llama, mistral or minigpt",
                            network::name(spec.family)));
  }
  json["architectures"] = {gpt       ? "GPT2LMHeadModel"
                           : mistral ? "MistralForCausalLM"
                                     : "LlamaForCausalLM"};
  json["model_type"] = gpt ? "gpt2" : spec.model_type;
  if (gpt) {
    add_gpt2(json, spec, given);
  } else {
    add_llama(json, spec, given);
    if (mistral) {
      const std::int64_t window = spec.layer(0).window;
      json["sliding_window"] = window > 0 ? Json(window) : Json();
    } else {
      json["attention_bias"] = spec.attention_bias;
      json["mlp_bias"] = spec.mlp_bias;
    }
  }
  json["tie_word_embeddings"] = spec.tied_head;
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    json[key] = given.contains(key) ? Json(given[key]) : Json();
  }
  json["dtype"] = dtype_name(dtype);
  json["torch_dtype"] = dtype_name(dtype);
  return json.dump(2) + "\n";
}

}  // namespace plimsoll::formats
