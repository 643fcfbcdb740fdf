// What a random job adapts, freezes and cuts, for messages.
#pragma once

#include <string>

#include <fmt/format.h>

#include "plimsoll/plan/job.hpp"

namespace plimsoll::test {

// " lora=2,q,v freeze=layers:0-1 chunks=3", or nothing.
inline std::string adaptation_text(const plan::Job& job) {
  std::string text;
  if (job.lora) {
    text += fmt::format(" lora={}", job.lora->rank);
    for (network::Matrix matrix : job.lora->targets) text += fmt::format(",{}", name(matrix));
  }
  for (const network::FreezeRule& rule : job.freeze) {
    text += fmt::format(" freeze={}:{}-{}", rule.text, rule.first, rule.last);
  }
  if (job.master) text += job.master->dtype ? " masters" : " no masters";
  if (job.grad_dtype) text += " fp32 gradients";
  if (job.loss_chunks > 1) text += fmt::format(" chunks={}", job.loss_chunks);
  return text;
}

}  // namespace plimsoll::test
