// The values of --lora and --freeze: what of a model learns.
//
//   --lora rank=R[,alpha=A][,targets=NAME,NAME,...]   targets: q, k, v, qkv, o, gate, up, gate_up,
//                                                     down, or all
//   --freeze ITEM,ITEM,...   embeddings, head, layers, layers:N, layers:N-M, or a parameter's name,
//                            in which * stands for any characters
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/network/adaptation.hpp"

namespace plimsoll::cli {

struct LoraChoice {
  network::Lora lora;
  std::vector<std::string> assumptions;  // what the value leaves open
};
// Whether the model has the targets is not checked here.
Result<LoraChoice> parse_lora(const std::string& text, const network::NetworkSpec& spec);

// Layers beyond the model's are refused; whether a name matches is not checked here.
Result<std::vector<network::FreezeRule>> parse_freeze(const std::string& text,
                                                      const network::NetworkSpec& spec);

}  // namespace plimsoll::cli
