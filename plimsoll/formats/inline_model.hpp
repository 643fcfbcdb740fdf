// Models written on the command line.
//
//   minigpt:d=128,L=4,V=1000,s=64,heads=4
//   cnn:channels=16-24-32,image=32,classes=10[,norm=batch|none][,bias=on|off][,relu=inplace|new]
//       [,pool=last|none]
//
// minigpt: d width, L layers, V vocabulary, s positions; F = 4 d, tied head, no biases in linears,
// exact GELU, eps 1e-5. cnn: 3x3 convolutions on a 3-channel square image, then a linear classifier
// with bias; without options no norm, with bias, ReLU into a new tensor, no pooling.
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/base/error.hpp"
#include "plimsoll/network/spec.hpp"

namespace plimsoll::formats {

// Does the text say "minigpt" or "cnn", alone or before a colon?
bool is_inline_model(std::string_view text);

// The kind that the word before the colon looks most like ("minigtp:d=3" -> "minigpt:"), or "".
std::string nearest_inline_kind(std::string_view text);

// The spec, validated; sizes that are left out take the values above and are listed as assumptions.
// An Error's `where` is the option ("minigpt:heads"). Precondition: is_inline_model(text).
Result<network::NetworkSpec> read_inline_model(std::string_view text);

}  // namespace plimsoll::formats
