// Hugging Face config.json -> NetworkSpec, for the model types whose timeline can be planned.
//
// What transformers 5 would build is what is read (class_config.hpp). A saved file, the short file
// on the hub and a full dump of the same model give the same spec; only the assumptions differ,
// because they list the defaults that were taken (sizes, tied head, activation).
//
// Not modelled, and said in an assumption: rotary scaling, quantised weights,
// heads other than the language model's. Tokenizer and generation keys are not read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/class_config.hpp"
#include "plimsoll/network/spec.hpp"

namespace plimsoll::formats {

// `where` names the text in messages and becomes the spec's title. Every flaw of the text gives one
// Error whose `where` is "WHERE:/json/path"; nothing is thrown. The spec has passed validate().
Result<network::NetworkSpec> read_config(std::string_view json_text, std::string_view where);
Result<network::NetworkSpec> read_config(const ClassConfig& config);

// The model types that read_config knows, sorted.
const std::vector<std::string>& planned_model_types();

}  // namespace plimsoll::formats
