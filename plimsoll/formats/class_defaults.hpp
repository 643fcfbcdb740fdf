// What the configuration classes of transformers 5 fill in when a file is silent, from
// data/class_defaults.json (which names its sources). Completing a whole config: class_config.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace plimsoll::formats {

// One configuration class. The JSON values live as long as the program.
struct ClassDefaults {
  std::string_view name;                    // "LlamaConfig in models/llama/configuration_llama.py"
  const nlohmann::json* values = nullptr;   // by key; null: see the file
  const nlohmann::json* aliases = nullptr;  // other spelling -> key; null pointer: none
  const nlohmann::json* renamed =
      nullptr;                           // old key -> key, the old one winning; null pointer: none
  const nlohmann::json* rope = nullptr;  // see rope_parameters.hpp; null pointer: not rotary
  std::int64_t labels = 2;               // classes of a classifier when the file is silent
};

// Null when the model type is not known.
const ClassDefaults* find_class_defaults(std::string_view model_type);

// The values alone, or null.
const nlohmann::json* class_defaults(std::string_view model_type);

// The model types that have defaults, sorted.
const std::vector<std::string>& known_model_types();

}  // namespace plimsoll::formats
