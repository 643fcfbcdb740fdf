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
// leaves the causal mask to the kernel. A mask needs no gradient and is saved. Where the kernel of the
// call cannot run, the one that the library would take does.
Tensor attention(Autograd& a, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                 const AttentionCall& call);

// The square of `queries` times `keys` and what a mask leaves of it: all of it, keys up to the query,
// or of those the last `window` ones. Queries are the last positions of the keys.
AttentionSquare attention_square(std::int64_t queries, std::int64_t keys, bool causal,
                                 std::int64_t window);

// What a call of attention looks like to the library's choice of a kernel.
struct AttentionUse {
  DType dtype = DType::kFloat32;
  bool dropout = false;
  bool grouped = false;  // fewer key heads than query heads
  bool masked = false;   // by a tensor, not by the kernel's own causal mask
};

bool kernel_exists(const LibraryFacts& facts, AttentionKernel kernel, const AttentionUse& use);
// Which kernel the library chooses by itself: flash, else memory-efficient, else math.
AttentionKernel chosen_kernel(const LibraryFacts& facts, const AttentionUse& use);

}  // namespace plimsoll::network::rules
