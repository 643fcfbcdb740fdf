// bloom's gelu: a function of autograd in user code, whose steps are single operations both ways.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

Tensor bloom_gelu(Autograd& a, const Tensor& x);  // saves x

}  // namespace plimsoll::network::rules
