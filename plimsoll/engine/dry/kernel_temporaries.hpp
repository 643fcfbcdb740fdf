// What CPU kernels of elementwise operations allocate beside their result, and meta kernels do not.
//
// On the CPU operands of another dtype are cast into temporaries before the result is made: a
// number (8 bytes, made by libtorch on both devices) costs its cast, a bf16 operand of an fp32
// product a whole fp32 tensor. Temporaries live until the operation ends.
#pragma once

#include <vector>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine::dry {

class KernelTemporaries {
 public:
  // Makes what the kernel of `operation` makes before its result; its arguments are on top of
  // `stack`. Nothing for operations without a rule, without meta tensors, or for a CUDA flavour.
  KernelTemporaries(const c10::OperatorHandle& operation, const torch::jit::Stack& stack);
  KernelTemporaries(const KernelTemporaries&) = delete;
  KernelTemporaries& operator=(const KernelTemporaries&) = delete;

  // Makes and drops what the kernel makes after its result, which is on top of `stack`.
  void after(const torch::jit::Stack& stack) const;

 private:
  void cast_operands(const c10::FunctionSchema& schema, const torch::jit::Stack& stack,
                     bool division);

  void (*after_)(const at::Tensor& result) = nullptr;
  std::vector<at::Tensor> alive_;
};

// `bytes` of scratch on meta, alive as long as the result.
at::Tensor scratch(std::int64_t bytes);

}  // namespace plimsoll::engine::dry
