// 3x3 convolutions and pooling of image networks.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

// x [B, C, H, W], weight [O, C, 3, 3], bias [O] or null; stride 1, padding 1. The copies that the
// CPU's kernels make are counted [Note: Convolution kernels].
Tensor conv2d(Autograd& a, const Tensor& x, const Tensor& weight, const Tensor& bias);

// 2x2 windows, stride 2; saves x and the indices (int64).
Tensor max_pool2(Autograd& a, const Tensor& x);

}  // namespace plimsoll::network::rules
