// Matrix products: mm, addmm, bmm, linear, batched matmul.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

Tensor mm(Autograd& a, const Tensor& x, const Tensor& y);
Tensor addmm(Autograd& a, const Tensor& bias, const Tensor& x, const Tensor& y);
Tensor bmm(Autograd& a, const Tensor& x, const Tensor& y, const AttentionSquare& square = {});
// at::baddbmm with a bias that needs no gradient and a scale other than 1.
Tensor baddbmm(Autograd& a, const Tensor& x, const Tensor& y, const AttentionSquare& square);
// x [..., in] times w [out, in], bias [out] or null.
Tensor linear(Autograd& a, const Tensor& x, const Tensor& w, const Tensor& bias);
// linear() inside a checkpoint region with policy "matmuls": the frame keeps the result, a rerun
// takes it from there. One node; saves x and w.
Tensor kept_linear(Autograd& a, const Tensor& x, const Tensor& w, const Tensor& bias);
// at::matmul of two 4-dimensional tensors whose first two dimensions are broadcast.
Tensor matmul4(Autograd& a, const Tensor& x, const Tensor& y, const AttentionSquare& square);

}  // namespace plimsoll::network::rules
