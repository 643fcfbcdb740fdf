// Arithmetic with a number of user code, as Python does it: the number becomes an 8-byte tensor that
// the graph keeps, unseen by saved-tensor hooks.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

// x * number and x / number. The number lives until the node's backward; its cast to x's dtype lives
// during the call. `in_place` makes no new tensor.
Tensor scale(Autograd& a, Tensor& x, bool in_place = false);
Tensor divide(Autograd& a, Tensor& x, bool in_place = false);

}  // namespace plimsoll::network::rules
