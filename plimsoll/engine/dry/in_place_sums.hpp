// Sums that libtorch makes in place, except for meta tensors, which it takes for tensors without
// storage: there a new block would appear that the CPU does not make.
//   * Autograd adds the second gradient of a value to the first, if nobody else holds the first.
//   * Attention as products adds the mask to the scores.
#pragma once

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine::dry {

// If `operation`, whose arguments are on top of `stack`, is such a sum: does it in place, leaves
// the result on the stack, returns true.
bool sum_in_place(const c10::OperatorHandle& operation, torch::jit::Stack& stack);

}  // namespace plimsoll::engine::dry
