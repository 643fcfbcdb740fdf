// Scaled dot product attention by kernel.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

struct AttentionCall {
  AttentionKernel kernel = AttentionKernel::kFlash;
  bool dropout = false;  // of the probabilities: only in the math kernel on the CPU
  bool causal = true;
  bool grouped = true;      // math: heads are repeated; else they are broadcast
  std::int64_t window = 0;  // keys that a query sees, itself included; 0: all before it
};

// q [B, N, T, H]; k, v [B, K, S, H] with N a multiple of K; mask [T, S] or [1, N, T, S], or null, which
// leaves the causal mask to the kernel. A mask needs no gradient and is saved.
Tensor attention(Autograd& a, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                 const AttentionCall& call);

// The square of `queries` times `keys` and what a mask leaves of it: all of it, keys up to the query,
// or of those the last `window` ones. Queries are the last positions of the keys.
AttentionSquare attention_square(std::int64_t queries, std::int64_t keys, bool causal,
                                 std::int64_t window);

// Which kernel the library chooses by itself.
AttentionKernel chosen_kernel(const LibraryFacts& facts, DType dtype, bool dropout);

}  // namespace plimsoll::network::rules
