// Keys that a configuration class of transformers 5 computes from others (its __post_init__): head
// sizes, key/value heads, inner widths, the kind of each layer.
#pragma once

#include <string_view>

#include "plimsoll/formats/class_keys.hpp"

namespace plimsoll::formats {

// Sizes and flags. `keys` holds the file's keys over the class defaults.
void derive_sizes(std::string_view model_type, ClassKeys& keys);

// Lists with one entry a layer: layer_types, mlp_layer_types, no_rope_layers, attention_layers ...
// Nothing is derived for more layers than kMostDerivedLayers.
void derive_layers(std::string_view model_type, ClassKeys& keys);

}  // namespace plimsoll::formats
