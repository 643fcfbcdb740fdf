// Operations that run differently on meta than on the CPU, set right by calling the operation that
// the CPU calls.
//
// [Note: Tensors without storage]
// libtorch takes meta tensors for tensors without storage and never edits them in place of its own
// accord. A new block would appear that the CPU does not make:
//   * autograd adds the second gradient of a value to the first, if nobody else holds the first;
//   * attention as products adds the mask to the scores, linear its bias to the product;
//   * backward formulas scatter a gradient into zeros that they have just made.
// Beside these, comparisons with a number cast the number on the CPU only.
#pragma once

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine::dry {

// If `operation`, whose arguments are on top of `stack`, is one of these: does what the CPU does,
// leaves the result on the stack, returns true.
bool rewrite(const c10::OperatorHandle& operation, torch::jit::Stack& stack);

}  // namespace plimsoll::engine::dry
