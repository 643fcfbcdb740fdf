// 3x3 convolutions and pooling of image networks.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

// x [B, C, H, W], weight [O, C, 3, 3], bias [O] or null; stride 1, padding 1. Scratch of the
// convolution library lies outside the allocator and is not counted.
Tensor conv2d(Autograd& a, const Tensor& x, const Tensor& weight, const Tensor& bias);

// 2x2 windows, stride 2; saves x and the indices (int64).
Tensor max_pool2(Autograd& a, const Tensor& x);

}  // namespace plimsoll::network::rules
