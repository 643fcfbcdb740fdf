// Small random config.json files of every planned transformer: sizes, and every switch of the class
// that changes how it computes.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/differential/chooser.hpp"

namespace plimsoll::tests {

// The model types there are configs of.
std::vector<std::string> family_types();

// A config of this type. Sizes are tiny, windows shorter and longer than the positions.
nlohmann::json random_config(const std::string& model_type, Chooser& choose);

}  // namespace plimsoll::tests
