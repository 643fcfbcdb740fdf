// Reads a config object key by key. Keeps the first problem: after it every read returns a harmless
// value, so that readers are plain lists of keys and one look at error() at the end.
//
// A key that is absent or null takes the class default. Where the default decides sizes that is
// noted as an assumption.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/error.hpp"

namespace plimsoll::formats {

class ConfigReader {
 public:
  // All three must outlive the reader.
  ConfigReader(const nlohmann::json& config, const nlohmann::json& defaults,
               std::string_view where);

  // A size. `alias` is another spelling of the key that the class accepts; giving both with
  // different values is refused.
  std::int64_t size(std::string_view key, std::string_view alias = {});
  // A size whose absence means `otherwise`: the class has no number of its own for it.
  std::int64_t size_or(std::string_view key, std::int64_t otherwise);
  // A size that null switches off; absent takes the class default.
  std::optional<std::int64_t> optional_size(std::string_view key);

  double positive(std::string_view key);
  double probability(std::string_view key);
  bool flag(std::string_view key);  // not noted when absent
  bool noted_flag(std::string_view key);
  std::string noted_text(std::string_view key);

  // The value when it is there and not null.
  const nlohmann::json* find(std::string_view key) const;
  bool is_null(std::string_view key) const;

  void assume(std::string line) { assumptions_.push_back(std::move(line)); }
  void refuse(std::string_view path, std::string what, std::string hint = {});
  std::string where(std::string_view path) const;

  const std::optional<Error>& error() const { return error_; }
  std::vector<std::string> take_assumptions() { return std::move(assumptions_); }

 private:
  // The value of the file, else the class default with a note.
  const nlohmann::json& value_or_default(std::string_view key, bool note);
  void note_default(std::string_view key, const std::string& value);
  std::string misspelled(std::string_view key) const;
  template <class T>
  T keep(Result<T> result, T harmless);

  const nlohmann::json& config_;
  const nlohmann::json& defaults_;
  std::string where_;
  std::optional<Error> error_;
  std::vector<std::string> assumptions_;
};

}  // namespace plimsoll::formats
