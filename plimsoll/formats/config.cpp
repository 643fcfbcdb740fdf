#include "plimsoll/formats/config.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/class_config.hpp"
#include "plimsoll/formats/config_parts.hpp"
#include "plimsoll/formats/json_text.hpp"

namespace plimsoll::formats {
namespace {

using network::NetworkSpec;
using nlohmann::json;

const std::vector<ModelType>& model_types() {
  static const std::vector<ModelType> kTypes = [] {
    std::vector<ModelType> all;
    for (const auto types :
         {bert_types(), falcon_types(), gemma_types(), gpt_types(), llama_types()}) {
      all.insert(all.end(), types.begin(), types.end());
    }
    std::sort(all.begin(), all.end(),
              [](const ModelType& a, const ModelType& b) { return a.name < b.name; });
    return all;
  }();
  return kTypes;
}

// Things that a config can ask for and that a plan leaves out; sizes of the model do not change.
void note_what_is_left_out(ConfigReader& reader, const NetworkSpec& spec) {
  if (reader.find("quantization_config") != nullptr) {
    reader.assume("quantization_config: present, planned with unquantised weights");
  }
  const json* architectures = reader.find("architectures");
  if (architectures == nullptr || !architectures->is_array()) return;
  const bool masked = spec.architecture.masked_head;
  for (const json& entry : *architectures) {
    const std::string name = entry.is_string() ? entry.get<std::string>() : "";
    if (masked ? name.ends_with("ForMaskedLM")
               : name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel")) {
      return;
    }
  }
  reader.assume(fmt::format("architectures: {}, planned as a {} language model",
                            json_value_text(*architectures), masked ? "masked" : "causal"));
}

Result<const ModelType*> find_model_type(const ClassConfig& config) {
  for (const ModelType& type : model_types()) {
    if (type.name == config.model_type) return &type;
  }
  return fail(
      json_where(config.where, fmt::format("{}/model_type", config.prefix)),
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
    for (const ModelType& type : model_types()) names.emplace_back(type.name);
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
  note_what_is_left_out(reader, spec);
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
