// Tells when a leaf's gradient is complete in a backward pass.
#pragma once

#include <functional>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine {

// From now on `hook(leaf)` is called after each accumulation into leaf.grad(), once per backward pass,
// on the thread of that pass. Replaces an earlier hook of the same leaf.
void on_gradient(const at::Tensor& leaf, std::function<void(const at::Tensor& leaf)> hook);

// Calls `function` once, when the backward pass that is running on this thread is over. Inside a pass
// alone: call it from a hook.
void when_backward_ends(std::function<void()> function);

// Which backward pass runs on this thread; -1: none. A pass that a node of another pass starts (a
// backward() inside backward) has a number of its own.
int running_pass();

// Removes the hook of on_gradient.
void forget_gradient(const at::Tensor& leaf);

}  // namespace plimsoll::engine
