// A lenient view of a config's keys for rules that derive one key from others: what has the wrong
// kind is not there. The reader that needs such a key complains about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace plimsoll::formats {

// Lists of one entry a layer are derived for at most so many layers.
inline constexpr std::int64_t kMostDerivedLayers = 10000;

class ClassKeys {
 public:
  explicit ClassKeys(nlohmann::json& keys) : keys_(keys) {}

  // The value when it is there and not null.
  const nlohmann::json* find(std::string_view key) const {
    const auto found = keys_.find(key);
    return found == keys_.end() || found->is_null() ? nullptr : &*found;
  }
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // A whole number from 1 to 2^53.
  std::optional<std::int64_t> size(std::string_view key) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr || !value->is_number_integer()) return std::nullopt;
    // Unsigned numbers beyond int64 turn negative here, and are no sizes either.
    const auto number = value->get<std::int64_t>();
    if (number < 1 || number > (std::int64_t{1} << 53U)) return std::nullopt;
    return number;
  }
  // The same, 0 included.
  std::optional<std::int64_t> count(std::string_view key) const {
    const nlohmann::json* value = find(key);
    if (value != nullptr && value->is_number_integer() && *value == 0) return 0;
    return size(key);
  }
  bool flag(std::string_view key) const {
    const nlohmann::json* value = find(key);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  bool is_text(std::string_view key, std::string_view text) const {
    const nlohmann::json* value = find(key);
    return value != nullptr && value->is_string() && *value == text;
  }

  // Whether the class or the file has the key, be it null.
  bool declares(std::string_view key) const { return keys_.contains(key); }

  void set(std::string_view key, nlohmann::json value) {
    keys_[std::string(key)] = std::move(value);
  }
  void set_if_absent(std::string_view key, const nlohmann::json* value) {
    if (!has(key) && value != nullptr) set(key, *value);
  }

 private:
  nlohmann::json& keys_;
};

}  // namespace plimsoll::formats
