// What CPU kernels allocate beside their result where the meta kernel of libtorch does not.
//
//   * Operands of another dtype are cast into temporaries before the result is made: a number
//     (8 bytes, made by libtorch on both devices) costs its cast, a bf16 operand of an fp32 product
//     a whole fp32 tensor. They live until the operation ends.
//   * Sums and means in another dtype, and some 16-bit ones, are taken of a cast copy.
//   * Matrix products copy operands that BLAS cannot read, softmax all that are not contiguous.
//   * resize_ gives a real block (meta only notes the size).
#pragma once

#include <functional>
#include <vector>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine::dry {

// What one operation allocates beside its result.
class KernelTemporaries {
 public:
  // Makes what the kernel of `operation` makes before its result; its arguments are on top of
  // `stack`. Nothing for operations without a rule or without meta tensors.
  KernelTemporaries(const c10::OperatorHandle& operation, const torch::jit::Stack& stack);
  KernelTemporaries(const KernelTemporaries&) = delete;
  KernelTemporaries& operator=(const KernelTemporaries&) = delete;

  // Makes and drops what the kernel makes after its result, which is on top of `stack`.
  void after(const torch::jit::Stack& stack) const;

 private:
  std::vector<at::Tensor> casts_;
  std::function<void(const at::Tensor& result)> after_;
};

// A meta tensor of `bytes`.
at::Tensor scratch(std::int64_t bytes);

// What the CPU's mean of `values` over all dimensions allocates when the result is there already.
void mean_into(const at::Tensor& values, const at::Tensor& result);

}  // namespace plimsoll::engine::dry
