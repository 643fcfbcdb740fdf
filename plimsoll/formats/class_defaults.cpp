#include "plimsoll/formats/class_defaults.hpp"

#include <functional>
#include <map>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/json_text.hpp"

namespace plimsoll::formats {

// Embedded by CMake.
std::span<const std::pair<std::string_view, std::string_view>> class_default_files();

namespace {

using nlohmann::json;
using Classes = std::map<std::string, ClassDefaults, std::less<>>;

const json& table() {
  static const json kTable = [] {
    const auto& [file, text] = class_default_files().front();
    auto parsed = parse_json(text, file);
    check(parsed.has_value(), "data/class_defaults.json does not parse");
    parsed->erase("plimsoll_source");
    return *std::move(parsed);
  }();
  return kTable;
}

const json* part(const json& entry, std::string_view key) {
  const auto found = entry.find(key);
  return found == entry.end() ? nullptr : &*found;
}

const Classes& classes() {
  static const Classes kClasses = [] {
    Classes all;
    for (const auto& [model_type, entry] : table().items()) {
      ClassDefaults defaults;
      defaults.name = entry.at("class").get_ref<const std::string&>();
      defaults.values = &entry.at("defaults");
      defaults.aliases = part(entry, "aliases");
      defaults.renamed = part(entry, "renamed");
      defaults.rope = part(entry, "rope");
      defaults.labels = entry.value("labels", defaults.labels);
      all.emplace(model_type, defaults);
    }
    return all;
  }();
  return kClasses;
}

}  // namespace

const ClassDefaults* find_class_defaults(std::string_view model_type) {
  const auto found = classes().find(model_type);
  return found == classes().end() ? nullptr : &found->second;
}

const json* class_defaults(std::string_view model_type) {
  const ClassDefaults* found = find_class_defaults(model_type);
  return found == nullptr ? nullptr : found->values;
}

const std::vector<std::string>& known_model_types() {
  static const std::vector<std::string> kTypes = [] {
    std::vector<std::string> types;
    for (const auto& [model_type, defaults] : classes()) types.push_back(model_type);
    return types;
  }();
  return kTypes;
}

}  // namespace plimsoll::formats
