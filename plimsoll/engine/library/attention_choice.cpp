#include "plimsoll/engine/library/attention_choice.hpp"

#include <ATen/ops/_fused_sdp_choice_native.h>

namespace plimsoll::engine {

at::SDPBackend cpu_attention_choice(const AttentionArguments& arguments) {
  return static_cast<at::SDPBackend>(at::native::_fused_sdp_choice_cpp(
      arguments.q, arguments.k, arguments.v, arguments.mask, arguments.dropout, arguments.causal,
      arguments.scale, arguments.grouped));
}

}  // namespace plimsoll::engine
