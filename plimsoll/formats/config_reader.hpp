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
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/class_config.hpp"

namespace plimsoll::formats {

class ConfigReader {
 public:
  // The config must outlive the reader.
  explicit ConfigReader(const ClassConfig& config);

  std::int64_t size(std::string_view key);
  // A size whose absence means `otherwise`: the class has no number of its own for it.
  std::int64_t size_or(std::string_view key, std::int64_t otherwise);
  // A size that null switches off; absent takes the class default.
  std::optional<std::int64_t> optional_size(std::string_view key);

  // A size that the class computes when the file does not give it: not noted.
  std::int64_t derived_size(std::string_view key);
  std::int64_t count(std::string_view key);   // 0 is allowed; not noted
  std::int64_t layers(std::string_view key);  // a size of at most kMostDerivedLayers

  // A size times a factor under `key`, without its fraction and at least 1.
  std::int64_t scaled(std::int64_t size, std::string_view key);

  // Lists. texts: one entry for each of `length` layers; more are ignored.
  std::vector<std::string> texts(std::string_view key, std::int64_t length);
  std::vector<std::int64_t> sizes(std::string_view key);

  // Classes of a classifier when the file does not say.
  std::int64_t class_labels() const;

  // Reads the object under `key` as a config of `model_type`; its problems become this reader's.
  template <class Read>
  std::int64_t inside(std::string_view key, std::string_view model_type, Read read) {
    const ClassConfig inner = nested_config(class_, key, model_type);
    ConfigReader reader(inner);
    const std::int64_t result = read(reader);
    if (!error_) error_ = reader.error_;
    for (std::string& line : reader.assumptions_) assume(std::move(line));
    return result;
  }

  double positive(std::string_view key);
  double probability(std::string_view key);
  bool flag(std::string_view key);  // not noted when absent; null is false
  std::string text(std::string_view key);
  bool noted_flag(std::string_view key);
  std::string noted_text(std::string_view key);

  // The value when it is there and not null.
  const nlohmann::json* find(std::string_view key) const;
  bool is_null(std::string_view key) const;
  // Whether the file or the class has a value.
  bool has(std::string_view key) const;
  // The value of file, rule or class; null pointer when none has one.
  const nlohmann::json* complete(std::string_view key) const;

  // Whether the class has the key at all: others in a file are read by nobody.
  bool declares(std::string_view key) const;

  void assume(std::string line);  // a line is kept once
  void refuse(std::string_view path, std::string what, std::string hint = {});
  // The same, at the place where the file has the key.
  void refuse_key(std::string_view key, std::string what, std::string hint = {});
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

  // Where the file has the key, under the name that it uses.
  std::string place(std::string_view key) const;

  const ClassConfig& class_;
  const nlohmann::json& config_;    // what the file gave
  const nlohmann::json& defaults_;  // the class's value of every key
  std::optional<Error> error_;
  std::vector<std::string> assumptions_;
};

}  // namespace plimsoll::formats
