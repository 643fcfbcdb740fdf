// Which attention kernel libtorch takes on the CPU, asked of libtorch for tensors that are not
// there.
#pragma once

#include <optional>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine {

struct AttentionArguments {
  const at::Tensor& q;
  const at::Tensor& k;
  const at::Tensor& v;
  const std::optional<at::Tensor>& mask;
  double dropout;
  bool causal;
  std::optional<double> scale;
  bool grouped;
};

// libtorch's own rule for CPU tensors, applied to tensors of any device.
at::SDPBackend cpu_attention_choice(const AttentionArguments& arguments);

}  // namespace plimsoll::engine
