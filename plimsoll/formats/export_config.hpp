// config.json for models that plimsoll trained, so that transformers builds the same function.
#pragma once

#include <string>

#include "plimsoll/base/error.hpp"
#include "plimsoll/network/dtype.hpp"
#include "plimsoll/network/spec.hpp"

namespace plimsoll::formats {

// The text for gpt2, llama and mistral models and for minigpt, which becomes a GPT-2. What plimsoll
// computes is what it says: no dropout, no rotary scaling. `described`: describe_model()'s text, from
// which ids of special tokens and the spelling of the activation are taken over. `dtype`: of the weights
// beside it. Error: another family.
Result<std::string> export_config(const network::NetworkSpec& spec, const std::string& described,
                                  network::DType dtype);

}  // namespace plimsoll::formats
