#include "plimsoll/formats/rope_parameters.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace plimsoll::formats {
namespace {

using nlohmann::json;

void set_default(json& settings, const char* key, const json& value) {
  if (!settings.contains(key) && !value.is_null()) settings[key] = value;
}

// The file's value under the key that the class names, else the class's own.
json value_of(const ClassKeys& keys, const json& rope, const char* key_name, const char* usual,
              const char* own) {
  const std::string key = rope.value(key_name, std::string(usual));
  if (const json* value = keys.find(key)) return *value;
  const auto found = rope.find(own);
  return found == rope.end() ? json() : *found;
}

// The keys of `settings` that are kinds of layers of this model.
std::vector<std::string> nested_keys(const json& settings, const ClassKeys& keys) {
  std::vector<std::string> nested;
  const json* types = keys.find("layer_types");
  if (types == nullptr || !types->is_array()) return nested;
  for (const auto& item : settings.items()) {
    const bool layer = std::find(types->begin(), types->end(), json(item.key())) != types->end();
    if (layer && item.value().is_object()) nested.push_back(item.key());
  }
  return nested;
}

void complete_set(json& settings, const json& theta, const json& partial, const ClassKeys& keys) {
  const json type = settings.value("type", json("default"));
  set_default(settings, "rope_type", type);
  set_default(settings, "rope_theta", theta);
  set_default(settings, "partial_rotary_factor", partial);
  const json& kind = settings.at("rope_type");
  if (kind != "llama3" && kind != "yarn" && kind != "longrope") return;
  if (const json* original = keys.find("original_max_position_embeddings")) {
    settings["original_max_position_embeddings"] = *original;
  } else if (const json* positions = keys.find("max_position_embeddings")) {
    set_default(settings, "original_max_position_embeddings", *positions);
  }
}

bool filled_object(const json* value) {
  return value != nullptr && value->is_object() && !value->empty();
}

json settings_of_file(const json& rope, const ClassKeys& keys) {
  for (const char* home : {"rope_scaling", "rope_parameters"}) {
    if (filled_object(keys.find(home))) return *keys.find(home);
  }
  json settings = rope.value("when_absent", json::object());
  if (settings.contains("max_position_embeddings") && keys.has("max_position_embeddings")) {
    settings["max_position_embeddings"] = *keys.find("max_position_embeddings");
  }
  return settings;
}

// MiniMax M2 says how many elements of a head turn, not which part.
json partial_of(const json& rope, const ClassKeys& keys) {
  const json partial = value_of(keys, rope, "partial_key", "partial_rotary_factor", "partial");
  const auto turning = keys.size("rotary_dim");
  const auto head = keys.size("head_dim");
  if (partial.is_null() && turning && head) {
    return static_cast<double>(*turning) / static_cast<double>(*head);
  }
  return partial;
}

json one_set(const json& rope, const ClassKeys& keys) {
  json settings = settings_of_file(rope, keys);
  const json theta = value_of(keys, rope, "theta_key", "rope_theta", "theta");
  const json partial = partial_of(rope, keys);
  const std::vector<std::string> nested = nested_keys(settings, keys);
  for (const std::string& kind : nested) complete_set(settings[kind], theta, partial, keys);
  if (nested.empty()) complete_set(settings, theta, partial, keys);
  return settings;
}

// Full and sliding layers have a theta of their own.
json two_sets(const json& rope, const ClassKeys& keys) {
  const json* given = keys.find("rope_parameters");
  json settings = filled_object(given) ? *given : json::object();
  for (const char* kind : {"full_attention", "sliding_attention"}) {
    if (!settings.contains(kind) || !settings.at(kind).is_object()) settings[kind] = json::object();
  }
  if (filled_object(keys.find("rope_scaling"))) {
    for (const json& kind : rope.at("scaled_layers")) {
      settings[kind.get<std::string>()].update(*keys.find("rope_scaling"));
    }
  }
  complete_set(settings["full_attention"], value_of(keys, rope, "theta_key", "rope_theta", "theta"),
               nullptr, keys);
  complete_set(settings["sliding_attention"],
               value_of(keys, rope, "local_theta_key", "", "local_theta"), nullptr, keys);
  return settings;
}

}  // namespace

void complete_rope(std::string_view model_type, const json& rope, ClassKeys& keys) {
  const json* given = keys.find("rope_parameters");
  if (given != nullptr && !given->is_object()) return;
  if (rope.contains("theta_key") && rope.at("theta_key").is_null()) {
    if (!filled_object(given)) keys.set("rope_parameters", rope.at("when_absent"));
    return;
  }
  json settings = rope.contains("local_theta") ? two_sets(rope, keys) : one_set(rope, keys);
  const bool renamed =
      settings.value("rope_type", json()) == "su" || settings.value("rope_type", json()) == "yarn";
  if (model_type == "phi3" && renamed) settings["rope_type"] = "longrope";
  keys.set("rope_parameters", std::move(settings));
}

RopeSettings rope_settings(const json& rope_parameters, std::string_view layer_type) {
  RopeSettings settings;
  settings.type = "default";
  if (!rope_parameters.is_object()) return settings;
  const auto nested = rope_parameters.find(layer_type);
  const json& set =
      nested != rope_parameters.end() && nested->is_object() ? *nested : rope_parameters;
  const auto number = [&](const char* key, double& target) {
    const auto found = set.find(key);
    if (found != set.end() && found->is_number()) target = found->get<double>();
  };
  number("rope_theta", settings.theta);
  number("partial_rotary_factor", settings.partial);
  const auto type = set.find("rope_type");
  if (type != set.end() && type->is_string()) settings.type = type->get_ref<const std::string&>();
  settings.scaled = settings.type != "default";
  return settings;
}

}  // namespace plimsoll::formats
