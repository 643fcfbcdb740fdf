// MODEL on the command line: from what the user typed to a NetworkSpec.
#pragma once

#include <string>

#include "plimsoll/base/error.hpp"
#include "plimsoll/network/spec.hpp"

namespace plimsoll::formats {

// In this order: an existing path (a config.json, or a folder that holds one), an inline model, a
// built-in name. The spec has passed validate(); its title is `argument`, a built-in one's name.
// Weights (.safetensors) describe tensors, not a network, and are refused here.
Result<network::NetworkSpec> load_model(const std::string& argument);

}  // namespace plimsoll::formats
