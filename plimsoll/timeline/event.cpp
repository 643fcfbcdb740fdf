#include "plimsoll/timeline/event.hpp"

#include <array>
#include <cstddef>

namespace plimsoll::timeline {

std::string_view name(Tag tag) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Tag::kCount)> kNames = {
      "parameters",        "master_copy", "gradients", "optimizer",
      "activations",       "backward",    "inputs",    "buffers",
      "logits_and_loss",   "gathered",    "reduce",    "workspace",
      "library_workspace", "snapshot",    "kv_cache",  "workspace_assumed"};
  return kNames.at(static_cast<std::size_t>(tag));
}

std::string_view name(Phase phase) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Phase::kCount)> kNames = {
      "model", "zero_grad", "forward", "loss", "backward", "reduce", "clip", "optimizer"};
  return kNames.at(static_cast<std::size_t>(phase));
}

}  // namespace plimsoll::timeline
