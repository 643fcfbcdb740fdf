// Rotary settings in one form, whichever way a file spells them.
//
// transformers 5 keeps them in rope_parameters; older files have rope_scaling, and rope_theta and
// partial_rotary_factor beside it. Models whose layers differ have one set for each kind of layer:
// {"full_attention": {...}, "sliding_attention": {...}}.
//
// `rope` is the class's part in data/class_defaults.json: theta (what the class fills in), theta_key
// and partial_key (where the file may have them; null: the class does not look), partial (rotary
// part of a head when the file is silent), when_absent (whole settings for files that have none),
// local_theta, local_theta_key, scaled_layers (classes with two sets).
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/formats/class_keys.hpp"

namespace plimsoll::formats {

// Completes keys["rope_parameters"]. Settings that are no object are left as they are.
void complete_rope(std::string_view model_type, const nlohmann::json& rope, ClassKeys& keys);

struct RopeSettings {
  double theta = 10000.0;
  double partial = 1.0;   // rotary part of a head
  bool scaled = false;    // a type other than "default"
  std::string_view type;  // "default", "llama3", "yarn" ...; lives as long as the keys
};

// What rope_parameters of a completed config say for one kind of layer ("full_attention"; a flat set
// is for all). Values of a wrong kind give the defaults.
RopeSettings rope_settings(const nlohmann::json& rope_parameters, std::string_view layer_type = {});

}  // namespace plimsoll::formats
