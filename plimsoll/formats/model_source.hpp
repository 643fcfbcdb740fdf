// MODEL on the command line: from what the user typed to a NetworkSpec, or to an inventory.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/inventory/inventory.hpp"
#include "plimsoll/network/spec.hpp"

namespace plimsoll::formats {

// In this order: an existing path (a config.json, or a folder that holds one), an inline model, a
// built-in name. The spec has passed validate(); its title is `argument`, a built-in one's name.
// Weights (.safetensors) describe tensors, not a network, and are refused here.
Result<network::NetworkSpec> load_model(const std::string& argument);

// MODEL as a text that needs no file and no list of this version any more: what a checkpoint keeps. An
// inline model as it was written, else the config.json. Errors as load_model().
Result<std::string> describe_model(const std::string& argument);

// The spec of such a text; its title is the inline model, or `title`.
Result<network::NetworkSpec> load_described_model(const std::string& text,
                                                  const std::string& title);

// What can be counted of a MODEL.
struct CountedModel {
  std::string title;
  // Formulas: inline models, and model types that can be planned.
  std::optional<network::NetworkSpec> spec;
  // Names and shapes: every model that has a config.json.
  std::optional<ModelInventory> inventory;
  // The keys that the inventory was read from; there when it is.
  std::optional<ClassConfig> config = std::nullopt;
};

// As load_model, also for model types whose steps cannot be planned. At least one of the two is
// there; where both are, they have the same number of parameters.
Result<CountedModel> load_counted_model(const std::string& argument);

}  // namespace plimsoll::formats
