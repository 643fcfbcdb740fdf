// Copies of operands that the CPU's matrix products make after their result exists: BLAS reads a
// matrix only if its rows or its columns are contiguous.
#pragma once

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine::dry {

// Makes and drops the copies of result = x @ y, for matrices.
void copy_operands(const at::Tensor& x, const at::Tensor& y, const at::Tensor& result);

// The same for batches of matrices.
void copy_batched_operands(const at::Tensor& x, const at::Tensor& y, const at::Tensor& result);

}  // namespace plimsoll::engine::dry
