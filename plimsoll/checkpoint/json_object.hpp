// Strict reading of JSON objects whose keys are all known.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "plimsoll/base/error.hpp"

namespace plimsoll::checkpoint {

// The first flaw of a document; later ones are not looked at.
class JsonFlaw {
 public:
  explicit JsonFlaw(std::string_view where) : where_(where) {}
  // At `path` stands `value`.
  void refuse(const std::string& path, const nlohmann::json& value, std::string_view expected);
  void refuse(const std::string& path, std::string what);
  bool found() const { return error_.has_value(); }
  Result<void> result() const;

 private:
  std::string_view where_;
  std::optional<Error> error_;
};

// One object at `path`. Getters give 0, "" or null after a flaw.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& value, std::string path, JsonFlaw& flaw);

  std::int64_t whole(const char* key);  // 0 .. 2^63 - 1
  std::string text(const char* key);
  const nlohmann::json& list(const char* key);
  const nlohmann::json& object(const char* key);
  std::string path(const char* key) const;
  // Keys that nobody asked for are flaws.
  void finish();

 private:
  const nlohmann::json& member(const char* key);

  const nlohmann::json& value_;
  const std::string path_;
  JsonFlaw& flaw_;
  std::set<std::string> asked_;
};

// A whole number from 0 to 2^63 - 1, else -1.
std::int64_t whole_or_minus_one(const nlohmann::json& value);

}  // namespace plimsoll::checkpoint
