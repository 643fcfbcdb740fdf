// Sums of gradients that autograd makes in place.
//
// When a value was used twice, the engine adds the second gradient to the first, in place if
// nobody else holds the first. For meta tensors libtorch never does so (it takes them for tensors
// without storage), and a new block would appear that the CPU does not make.
#pragma once

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine::dry {

// If `operation`, whose arguments are on top of `stack`, is such a sum by the engine, and would be
// in place on the CPU: does it in place, leaves the result on the stack, returns true.
bool sum_gradients_in_place(const c10::OperatorHandle& operation, torch::jit::Stack& stack);

}  // namespace plimsoll::engine::dry
