// Elementwise operations: add, mul, neg, pow 2, rsqrt, mean, activations, dropout, casts.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

Tensor add(Autograd& a, const Tensor& x, const Tensor& y);
Tensor mul(Autograd& a, const Tensor& x, const Tensor& y);
Tensor mul_number(Autograd& a, const Tensor& x);
// x + number; `in_place` allocates only the number's blocks.
Tensor add_number(Autograd& a, const Tensor& x, bool in_place = false);
Tensor neg(Autograd& a, const Tensor& x);
Tensor pow2(Autograd& a, const Tensor& x);
Tensor rsqrt(Autograd& a, const Tensor& x);
Tensor mean_last(Autograd& a, const Tensor& x);  // over the last dimension, kept
Tensor gelu(Autograd& a, const Tensor& x);       // exact (erf)
Tensor gelu_tanh(Autograd& a, const Tensor& x);  // tanh approximation
Tensor silu(Autograd& a, const Tensor& x);
Tensor tanh(Autograd& a, const Tensor& x);
Tensor clamp(Autograd& a, const Tensor& x);  // by two numbers
Tensor relu(Autograd& a, const Tensor& x);
Tensor relu_in_place(Autograd& a, Tensor& x);
Tensor dropout(Autograd& a, const Tensor& x);
Tensor to(Autograd& a, const Tensor& x, DType dtype);

}  // namespace plimsoll::network::rules
