#include "plimsoll/formats/builtin_models.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/letter_case.hpp"

namespace plimsoll::formats {

// Embedded by CMake.
std::span<const std::pair<std::string_view, std::string_view>> model_files();

namespace {

BuiltinModel read_builtin(std::string_view file, std::string_view text) {
  const auto config = parse_json(text, file);
  check(config.has_value() && config->contains("plimsoll_source"),
        "a file in data/models does not parse or lacks plimsoll_source");
  return {file.substr(0, file.rfind(".json")), text, config->at("plimsoll_source")};
}

}  // namespace

std::span<const BuiltinModel> builtin_models() {
  static const std::vector<BuiltinModel> kModels = [] {
    std::vector<BuiltinModel> models;
    for (const auto& [file, text] : model_files()) models.push_back(read_builtin(file, text));
    return models;
  }();
  return kModels;
}

const BuiltinModel* find_builtin_model(std::string_view name) {
  const std::string wanted = lower_case(name);
  for (const BuiltinModel& model : builtin_models()) {
    if (model.name == wanted) return &model;
  }
  return nullptr;
}

std::string nearest_builtin_model(std::string_view name) {
  std::vector<std::string> names;
  for (const BuiltinModel& model : builtin_models()) names.emplace_back(model.name);
  return nearest_name(lower_case(name.substr(0, 64)), names);
}

}  // namespace plimsoll::formats
