#include "plimsoll/formats/class_defaults.hpp"

#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/json_text.hpp"

namespace plimsoll::formats {

// Embedded by CMake.
std::span<const std::pair<std::string_view, std::string_view>> class_default_files();

namespace {

const nlohmann::json& table() {
  static const nlohmann::json kTable = [] {
    const auto& [file, text] = class_default_files().front();
    auto parsed = parse_json(text, file);
    check(parsed.has_value(), "data/class_defaults.json does not parse");
    parsed->erase("plimsoll_source");
    return *std::move(parsed);
  }();
  return kTable;
}

}  // namespace

const nlohmann::json* class_defaults(std::string_view model_type) {
  const auto found = table().find(model_type);
  return found == table().end() ? nullptr : &*found;
}

const std::vector<std::string>& known_model_types() {
  static const std::vector<std::string> kTypes = [] {
    std::vector<std::string> types;
    for (const auto& item : table().items()) types.push_back(item.key());
    return types;
  }();
  return kTypes;
}

}  // namespace plimsoll::formats
