// Models that plimsoll knows by name: published configurations, from data/models.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::formats {

struct BuiltinModel {
  std::string_view name;    // "llama-3-8b"
  std::string_view config;  // the text of a config.json
  std::string source;       // where the figures are from
};

// All of them, in the order of data/models in CMake.
std::span<const BuiltinModel> builtin_models();

// By name, upper and lower case alike; null when there is none.
const BuiltinModel* find_builtin_model(std::string_view name);

// The built-in name that looks most like `name`, or "".
std::string nearest_builtin_model(std::string_view name);

}  // namespace plimsoll::formats
