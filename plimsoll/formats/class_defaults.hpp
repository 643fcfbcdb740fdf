// Defaults of the configuration classes of transformers 5, from data/class_defaults.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace plimsoll::formats {

// The defaults of one model type by config key, or null when it is not known. A default of null
// means that the size follows from others (see the file).
const nlohmann::json* class_defaults(std::string_view model_type);

// The model types that have defaults, sorted: those that read_config can plan.
const std::vector<std::string>& known_model_types();

}  // namespace plimsoll::formats
