// Squares of gradients, for clipping.
#pragma once

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine::zero {

// Sum of the squares of a contiguous fp32, fp64 or bf16 tensor, in fp64 and in an order that depends on its
// number of elements alone. No allocation. 0 on the meta device.
double sum_of_squares(const at::Tensor& values);

// What gradients are multiplied by so that their norm is at most `most`: float(most / norm), at most 1;
// 1 without a limit (most <= 0). NaN when the norm is.
double clip_factor(double norm, double most);

}  // namespace plimsoll::engine::zero
