#include "plimsoll/checkpoint/json_object.hpp"

#include <utility>

#include <fmt/format.h>

#include "plimsoll/formats/json_text.hpp"

namespace plimsoll::checkpoint {

using nlohmann::json;

void JsonFlaw::refuse(const std::string& path, const json& value, std::string_view expected) {
  refuse(path, fmt::format("{}, expected {}", formats::json_value_text(value), expected));
}

void JsonFlaw::refuse(const std::string& path, std::string what) {
  if (!error_) error_ = Error{formats::json_where(where_, path), std::move(what), ""};
}

Result<void> JsonFlaw::result() const {
  if (error_) return tl::unexpected<Error>(*error_);
  return {};
}

JsonObject::JsonObject(const json& value, std::string path, JsonFlaw& flaw)
    : value_(value), path_(std::move(path)), flaw_(flaw) {
  if (!value.is_object()) flaw.refuse(path_, value, "an object");
}

std::string JsonObject::path(const char* key) const { return path_ + formats::json_step(key); }

const json& JsonObject::member(const char* key) {
  static const json kNull;
  asked_.insert(key);
  const auto found = value_.is_object() ? value_.find(key) : value_.end();
  if (found != value_.end()) return *found;
  flaw_.refuse(path(key), "is missing");
  return kNull;
}

std::int64_t JsonObject::whole(const char* key) {
  const json& value = member(key);
  const std::int64_t number = whole_or_minus_one(value);
  if (number >= 0) return number;
  flaw_.refuse(path(key), value, "a whole number of at least 0");
  return 0;
}

std::string JsonObject::text(const char* key) {
  const json& value = member(key);
  if (value.is_string()) return value.get<std::string>();
  flaw_.refuse(path(key), value, "text");
  return "";
}

const json& JsonObject::list(const char* key) {
  static const json kEmpty = json::array();
  const json& value = member(key);
  if (value.is_array()) return value;
  flaw_.refuse(path(key), value, "a list");
  return kEmpty;
}

const json& JsonObject::object(const char* key) {
  static const json kEmpty = json::object();
  const json& value = member(key);
  if (value.is_object()) return value;
  flaw_.refuse(path(key), value, "an object");
  return kEmpty;
}

void JsonObject::finish() {
  if (!value_.is_object()) return;
  for (const auto& item : value_.items()) {
    if (asked_.contains(item.key())) continue;
    flaw_.refuse(path(item.key().c_str()), "is no key of this format");
  }
}

std::int64_t whole_or_minus_one(const json& value) {
  if (!value.is_number_unsigned()) return -1;
  const auto number = value.get<std::uint64_t>();
  constexpr auto kMost = static_cast<std::uint64_t>(INT64_MAX);
  return number <= kMost ? static_cast<std::int64_t>(number) : -1;
}

}  // namespace plimsoll::checkpoint
