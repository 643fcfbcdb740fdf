// Softmax over the last dimension.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

// at::softmax: a contiguous result, which is saved.
Tensor softmax(Autograd& a, const Tensor& x);

// Its gradient; slot 0 holds the result. Shared with attention's own softmax.
void softmax_backward(Autograd& a, Node& node, Gradients& in, Gradients& out);

}  // namespace plimsoll::network::rules
