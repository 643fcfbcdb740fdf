// Scaled dot product attention, causal, by kernel.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

// q [B, N, T, H]; k, v [B, K, S, H] with N a multiple of K. Dropout of the probabilities exists only in
// the math kernel on the CPU (callers choose kMath then).
Tensor attention(Autograd& a, const Tensor& q, const Tensor& k, const Tensor& v,
                 AttentionKernel kernel, bool dropout);

// Which kernel the library chooses by itself.
AttentionKernel chosen_kernel(const LibraryFacts& facts, DType dtype, bool dropout);

}  // namespace plimsoll::network::rules
