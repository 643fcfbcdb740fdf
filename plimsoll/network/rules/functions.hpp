// Further elementwise functions: third powers, differences, sums in place.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

Tensor pow3(Autograd& a, const Tensor& x);  // saves x
Tensor sub(Autograd& a, const Tensor& x, const Tensor& y);
Tensor add_in_place(Autograd& a, Tensor& x, const Tensor& y);  // x += y, of x's shape and dtype

}  // namespace plimsoll::network::rules
