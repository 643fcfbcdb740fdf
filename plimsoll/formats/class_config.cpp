#include "plimsoll/formats/class_config.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/class_defaults.hpp"
#include "plimsoll/formats/class_rules.hpp"
#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/json_values.hpp"
#include "plimsoll/formats/rope_parameters.hpp"

namespace plimsoll::formats {
namespace {

using nlohmann::json;

Result<std::string> read_model_type(const json& config, const std::string& where) {
  const std::string place = json_where(where, "/model_type");
  const auto value = config.find("model_type");
  if (value == config.end() || value->is_null()) {
    return fail(place, "missing, expected a model type such as gpt2, llama or mistral",
                "`plimsoll doctor` lists the model types that are known");
  }
  return as_text(*value, place);
}

tl::unexpected<Error> unknown_model_type(const std::string& model_type, const std::string& where) {
  const std::string near = nearest_name(model_type.substr(0, 64), known_model_types());
  return fail(json_where(where, "/model_type"),
              fmt::format("{} is not known, expected a model type that `plimsoll doctor` lists",
                          json_value_text(model_type)),
              near.empty() ? "" : "nearest name: " + near);
}

// The text part of a multimodal config, or null.
const json* text_part(const json& config) {
  const auto part = config.find("text_config");
  if (part == config.end() || !part->is_object()) return nullptr;
  const auto type = part->find("model_type");
  const bool known = type != part->end() && type->is_string() &&
                     find_class_defaults(type->get_ref<const std::string&>()) != nullptr;
  return known ? &*part : nullptr;
}

void take_over(const json& config, const std::string& from, const std::string& to, json& keys,
               ClassConfig& result) {
  keys.erase(from);
  keys[to] = config.at(from);
  result.spelled[to] = from;
}

// The keys of the file under the class's names.
Result<json> canonical_keys(const json& config, const ClassDefaults& defaults,
                            ClassConfig& result) {
  json keys = config;
  if (defaults.renamed != nullptr) {
    for (const auto& [old, key] : defaults.renamed->items()) {
      if (config.contains(old)) take_over(config, old, key.get<std::string>(), keys, result);
    }
  }
  if (defaults.aliases == nullptr) return keys;
  for (const auto& [alias, key] : defaults.aliases->items()) {
    const auto other = config.find(alias);
    if (other == config.end()) continue;
    const std::string name = key.get<std::string>();
    const auto own = config.find(name);
    const bool given = own != config.end() && !own->is_null();
    if (given && !other->is_null() && *own != *other) {
      return fail(json_where(result.where, result.prefix + json_step(alias)),
                  fmt::format("{}, but {} is {}, expected the same number", json_value_text(*other),
                              name, json_value_text(*own)));
    }
    keys.erase(alias);
    if (!given) take_over(config, alias, name, keys, result);
  }
  return keys;
}

void complete(const json& canonical, const ClassDefaults& defaults, ClassConfig& result) {
  json keys = *defaults.values;
  keys.update(canonical);
  ClassKeys view(keys);
  derive_sizes(result.model_type, view);
  derive_layers(result.model_type, view);
  if (defaults.rope != nullptr) {
    view.set_if_absent("rope_theta", &defaults.rope->at("theta"));
    complete_rope(result.model_type, *defaults.rope, view);
  }
  json given = json::object();
  for (const auto& item : canonical.items()) {
    const bool replaced = keys.at(item.key()) != item.value();
    const bool completed = item.key() == "rope_parameters";  // readers see what the file says
    if (!replaced || completed || item.value().is_null()) given[item.key()] = item.value();
  }
  result.keys = std::make_shared<const json>(std::move(keys));
  result.given = std::make_shared<const json>(std::move(given));
}

// Whether an object has keys of the class under any of their names; ids of tokens stand in settings of
// generation too.
bool has_class_keys(const json& object, const ClassDefaults& defaults) {
  for (const auto& item : object.items()) {
    const std::string& key = item.key();
    const bool alias = defaults.aliases != nullptr && defaults.aliases->contains(key);
    // Versions before 5 have settings of the rotation beside the sizes.
    const bool rotary =
        key.starts_with("rope_") || key.starts_with("rotary_") || key == "partial_rotary_factor";
    if (rotary || (!key.ends_with("_id") && (alias || defaults.values->contains(key)))) return true;
  }
  return false;
}

// A file without any key of its class would be read as the default model of the class. It is meant only
// where architectures stands beside model_type, as a saved default config has it; a file that wraps a
// config has its keys one level down.
Result<void> refuse_without_keys(const json& file, const ClassDefaults& defaults,
                                 const ClassConfig& config) {
  if (has_class_keys(file, defaults)) return {};
  for (const auto& item : file.items()) {
    const bool rotary = item.key().starts_with("rope_");
    if (rotary || !item.value().is_object() || !has_class_keys(item.value(), defaults)) continue;
    return fail(json_where(config.where, config.prefix + json_step(item.key())),
                fmt::format("holds the keys of a {} model, expected them at the top of the file",
                            config.model_type));
  }
  if (!config.prefix.empty() || file.contains("architectures")) return {};
  return fail(
      config.where,
      fmt::format("has no key of a {} model but model_type, expected its sizes", config.model_type),
      "with architectures beside model_type it is the default model of the class");
}

// Pre-5 files keep the flag inside, newer ones outside.
json text_keys(const json& config, const json& part) {
  json keys = part;
  const auto tied = config.find("tie_word_embeddings");
  if (tied != config.end() && !keys.contains("tie_word_embeddings")) {
    keys["tie_word_embeddings"] = *tied;
  }
  return keys;
}

}  // namespace

Result<ClassConfig> class_config(const json& config, std::string_view where) {
  ClassConfig result;
  result.where = where;
  if (!config.is_object()) {
    return fail(result.where, fmt::format("{}, expected a JSON object with the keys of a "
                                          "config.json",
                                          json_value_text(config)));
  }
  auto model_type = read_model_type(config, result.where);
  if (!model_type) return tl::unexpected<Error>(model_type.error());
  result.model_type = *model_type;
  json file = config;
  if (find_class_defaults(*model_type) == nullptr) {
    const json* part = text_part(config);
    if (part == nullptr) return unknown_model_type(*model_type, result.where);
    file = text_keys(config, *part);
    result.prefix = "/text_config";
    result.model_type = part->at("model_type").get<std::string>();
    result.assumptions.push_back(fmt::format(
        "model_type: {}, read as the {} of its text_config; what is outside it (vision, "
        "audio, projections) is not counted",
        *model_type, result.model_type));
  }
  const ClassDefaults& defaults = *find_class_defaults(result.model_type);
  const auto canonical = canonical_keys(file, defaults, result);
  if (!canonical) return tl::unexpected<Error>(canonical.error());
  if (auto flat = refuse_without_keys(*canonical, defaults, result); !flat) {
    return tl::unexpected<Error>(flat.error());
  }
  complete(*canonical, defaults, result);
  return result;
}

ClassConfig nested_config(const ClassConfig& outer, std::string_view key,
                          std::string_view model_type) {
  const ClassDefaults* defaults = find_class_defaults(model_type);
  check(defaults != nullptr, "a nested config of an unknown model type");
  ClassConfig result;
  result.model_type = model_type;
  result.prefix = outer.prefix + json_step(key);
  result.where = outer.where;
  const auto found = outer.keys->find(key);
  const bool object = found != outer.keys->end() && found->is_object();
  complete(object ? *found : json::object(), *defaults, result);
  return result;
}

}  // namespace plimsoll::formats
