#include "plimsoll/formats/config_reader.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/class_defaults.hpp"
#include "plimsoll/formats/class_keys.hpp"
#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/json_values.hpp"

namespace plimsoll::formats {

using nlohmann::json;

ConfigReader::ConfigReader(const ClassConfig& config)
    : class_(config), config_(*config.given), defaults_(*config.keys) {
  assumptions_ = config.assumptions;
}

std::string ConfigReader::where(std::string_view path) const {
  return json_where(class_.where, class_.prefix + std::string(path));
}

std::string ConfigReader::place(std::string_view key) const {
  const auto spelled = class_.spelled.find(key);
  return where(json_step(spelled == class_.spelled.end() ? key : spelled->second));
}

void ConfigReader::assume(std::string line) {
  if (std::find(assumptions_.begin(), assumptions_.end(), line) != assumptions_.end()) return;
  assumptions_.push_back(std::move(line));
}

void ConfigReader::refuse(std::string_view path, std::string what, std::string hint) {
  if (!error_) error_ = Error{where(path), std::move(what), std::move(hint)};
}

void ConfigReader::refuse_key(std::string_view key, std::string what, std::string hint) {
  if (!error_) error_ = Error{place(key), std::move(what), std::move(hint)};
}

template <class T>
T ConfigReader::keep(Result<T> result, T harmless) {
  if (result) return *std::move(result);
  if (!error_) error_ = std::move(result).error();
  return harmless;
}

const json* ConfigReader::find(std::string_view key) const {
  const auto found = config_.find(key);
  return found == config_.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::is_null(std::string_view key) const {
  const auto found = config_.find(key);
  return found != config_.end() && found->is_null();
}

const json* ConfigReader::complete(std::string_view key) const {
  const auto found = defaults_.find(key);
  return found == defaults_.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::declares(std::string_view key) const {
  const ClassDefaults* known = find_class_defaults(class_.model_type);
  return known == nullptr || known->values == nullptr || known->values->contains(key);
}

bool ConfigReader::has(std::string_view key) const { return complete(key) != nullptr; }

// A key of the file that nobody reads and that looks like `key`, or "".
std::string ConfigReader::misspelled(std::string_view key) const {
  constexpr std::size_t kShortest = 6;  // short keys resemble each other by chance
  if (key.size() < kShortest) return {};
  std::vector<std::string> strangers;
  const json& known = *find_class_defaults(class_.model_type)->values;
  for (const auto& item : config_.items()) {
    const bool rotary = item.key().starts_with("rope_");  // other homes of rope_parameters
    if (!known.contains(item.key()) && !rotary && item.key().size() <= 2 * key.size()) {
      strangers.push_back(item.key());
    }
  }
  return nearest_name(key, strangers);
}

void ConfigReader::note_default(std::string_view key, const std::string& value) {
  std::string line = fmt::format("{}: absent, {}", key, value);
  if (const std::string near = misspelled(key); !near.empty()) {
    line += fmt::format(" (the file has {}, which is not read)", near);
  }
  assume(std::move(line));
}

const json& ConfigReader::value_or_default(std::string_view key, bool note) {
  if (const json* value = find(key)) return *value;
  const auto complete = defaults_.find(key);
  check(complete != defaults_.end(), fmt::format("data/class_defaults.json lacks {}", key));
  const json& known = *find_class_defaults(class_.model_type)->values;
  const auto own = known.find(key);
  const bool of_class = own != known.end() && (complete->is_null() || *own == *complete);
  // Where the file says null and the class has a value, the class itself would stumble over it.
  const json& standard = of_class ? *own : *complete;
  if (note) {
    note_default(key, of_class ? fmt::format("class default {}", standard.dump())
                               : fmt::format("{} follows from other keys", standard.dump()));
  }
  return standard;
}

std::int64_t ConfigReader::size(std::string_view key) {
  return keep<std::int64_t>(as_size(value_or_default(key, true), place(key)), 1);
}

std::int64_t ConfigReader::derived_size(std::string_view key) {
  return keep<std::int64_t>(as_size(value_or_default(key, false), place(key)), 1);
}

std::int64_t ConfigReader::count(std::string_view key) {
  const json& value = value_or_default(key, false);
  return value == 0 ? 0 : keep<std::int64_t>(as_size(value, place(key)), 0);
}

std::int64_t ConfigReader::layers(std::string_view key) {
  const std::int64_t count = size(key);
  if (count <= kMostDerivedLayers) return count;
  refuse_key(key,
             fmt::format("{}, expected a whole number from 1 to {}", count, kMostDerivedLayers));
  return 1;
}

std::int64_t ConfigReader::scaled(std::int64_t size, std::string_view key) {
  constexpr double kLargestSize = 9007199254740992;  // 2^53
  const double product = positive(key) * static_cast<double>(size);
  if (product <= kLargestSize) return std::max<std::int64_t>(1, static_cast<std::int64_t>(product));
  refuse_key(key, fmt::format("times {} is {}, expected at most 2^53", size, product));
  return 1;
}

std::vector<std::string> ConfigReader::texts(std::string_view key, std::int64_t length) {
  const auto wanted = static_cast<std::size_t>(length);
  const json* list = complete(key);
  std::vector<std::string> result;
  if (list != nullptr && list->is_array()) {
    for (const json& entry : *list) {
      if (!entry.is_string() || result.size() == wanted) break;
      result.push_back(entry.get<std::string>());
    }
  }
  if (result.size() == wanted) {
    if (find(key) == nullptr) note_default(key, "the class's own pattern");
    return result;
  }
  refuse_key(key, fmt::format("{}, expected a list of {} strings",
                              list == nullptr ? "null" : json_value_text(*list), length));
  return std::vector<std::string>(wanted);
}

std::vector<std::int64_t> ConfigReader::sizes(std::string_view key) {
  const json& list = value_or_default(key, true);
  std::vector<std::int64_t> result;
  if (!list.is_array() || list.empty()) {
    refuse_key(key, json_value_text(list) + ", expected a list of whole numbers");
    return {1};
  }
  for (const json& entry : list) {
    result.push_back(keep<std::int64_t>(as_size(entry, place(key)), 1));
  }
  return result;
}

std::int64_t ConfigReader::class_labels() const {
  return find_class_defaults(class_.model_type)->labels;
}

std::int64_t ConfigReader::size_or(std::string_view key, std::int64_t otherwise) {
  const json* value = find(key);
  return value == nullptr ? otherwise : keep<std::int64_t>(as_size(*value, place(key)), 1);
}

std::optional<std::int64_t> ConfigReader::optional_size(std::string_view key) {
  if (is_null(key)) return std::nullopt;
  const json& value = value_or_default(key, false);
  if (value.is_null()) return std::nullopt;
  return keep<std::int64_t>(as_size(value, place(key)), 1);
}

double ConfigReader::positive(std::string_view key) {
  return keep(as_positive(value_or_default(key, false), place(key)), 1.0);
}

double ConfigReader::probability(std::string_view key) {
  return keep(as_probability(value_or_default(key, false), place(key)), 0.0);
}

bool ConfigReader::flag(std::string_view key) {
  if (is_null(key)) return false;
  return keep(as_flag(value_or_default(key, false), place(key)), false);
}

bool ConfigReader::noted_flag(std::string_view key) {
  return keep(as_flag(value_or_default(key, true), place(key)), false);
}

std::string ConfigReader::text(std::string_view key) {
  return keep(as_text(value_or_default(key, false), place(key)), std::string());
}

std::string ConfigReader::noted_text(std::string_view key) {
  return keep(as_text(value_or_default(key, true), place(key)), std::string());
}

}  // namespace plimsoll::formats
