#include "plimsoll/formats/config_reader.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/json_values.hpp"

namespace plimsoll::formats {

using nlohmann::json;

ConfigReader::ConfigReader(const json& config, const json& defaults, std::string_view where)
    : config_(config), defaults_(defaults), where_(where) {}

std::string ConfigReader::where(std::string_view path) const { return json_where(where_, path); }

void ConfigReader::refuse(std::string_view path, std::string what, std::string hint) {
  if (!error_) error_ = Error{where(path), std::move(what), std::move(hint)};
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

// A key of the file that nobody reads and that looks like `key`, or "".
std::string ConfigReader::misspelled(std::string_view key) const {
  constexpr std::size_t kShortest = 6;  // short keys resemble each other by chance
  if (key.size() < kShortest) return {};
  std::vector<std::string> strangers;
  for (const auto& item : config_.items()) {
    if (!defaults_.contains(item.key()) && item.key().size() <= 2 * key.size()) {
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
  const auto standard = defaults_.find(key);
  check(standard != defaults_.end(), fmt::format("data/class_defaults.json lacks {}", key));
  if (note) note_default(key, fmt::format("class default {}", standard->dump()));
  return *standard;
}

std::int64_t ConfigReader::size(std::string_view key, std::string_view alias) {
  const json* other = alias.empty() ? nullptr : find(alias);
  if (other == nullptr) {
    return keep<std::int64_t>(as_size(value_or_default(key, true), where(json_step(key))), 1);
  }
  if (const json* value = find(key); value != nullptr && *value != *other) {
    refuse(json_step(alias), fmt::format("{}, but {} is {}, expected the same number",
                                         json_value_text(*other), key, json_value_text(*value)));
  }
  return keep<std::int64_t>(as_size(*other, where(json_step(alias))), 1);
}

std::int64_t ConfigReader::size_or(std::string_view key, std::int64_t otherwise) {
  const json* value = find(key);
  return value == nullptr ? otherwise
                          : keep<std::int64_t>(as_size(*value, where(json_step(key))), 1);
}

std::optional<std::int64_t> ConfigReader::optional_size(std::string_view key) {
  if (is_null(key)) return std::nullopt;
  const json& value = value_or_default(key, false);
  if (value.is_null()) return std::nullopt;
  return keep<std::int64_t>(as_size(value, where(json_step(key))), 1);
}

double ConfigReader::positive(std::string_view key) {
  return keep(as_positive(value_or_default(key, false), where(json_step(key))), 1.0);
}

double ConfigReader::probability(std::string_view key) {
  return keep(as_probability(value_or_default(key, false), where(json_step(key))), 0.0);
}

bool ConfigReader::flag(std::string_view key) {
  return keep(as_flag(value_or_default(key, false), where(json_step(key))), false);
}

bool ConfigReader::noted_flag(std::string_view key) {
  return keep(as_flag(value_or_default(key, true), where(json_step(key))), false);
}

std::string ConfigReader::noted_text(std::string_view key) {
  return keep(as_text(value_or_default(key, true), where(json_step(key))), std::string());
}

}  // namespace plimsoll::formats
