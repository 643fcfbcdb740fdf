// LayerNorm, RMSNorm and BatchNorm.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

// native_layer_norm over the last dimension. Saves x, w, b whatever is frozen; w and b may be null.
Tensor layer_norm(Autograd& a, const Tensor& x, const Tensor& w, const Tensor& b);

// at::rms_norm: one kernel where the library has one, else its composite of simple operations.
Tensor rms_norm(Autograd& a, const Tensor& x, const Tensor& w);

// native_batch_norm in training mode; running statistics are updated in place.
Tensor batch_norm(Autograd& a, const Tensor& x, const Tensor& w, const Tensor& b,
                  const Tensor& running_mean, const Tensor& running_var);

}  // namespace plimsoll::network::rules
