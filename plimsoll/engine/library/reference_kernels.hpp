// Which of the library's CPU kernels run.
#pragma once

namespace plimsoll::engine {

// [Note: Reference kernels] On CPUs with AVX512-BF16 or AMX, oneDNN multiplies 16-bit matrices with
// scratch memory whose size depends on the processor's model. This call keeps oneDNN to AVX2, where
// libtorch uses its own kernels without scratch, so that measured bytes mean the same on every
// machine. 16-bit products become much slower. To be called before libtorch multiplies anything;
// an ONEDNN_MAX_CPU_ISA that the user set is left alone. Returns whether AVX2 is now the limit.
bool use_reference_kernels();

// Whether AVX2 is the limit, by the environment: nothing is changed.
bool runs_reference_kernels();

// Whether this CPU has the 16-bit units that make the difference.
bool cpu_multiplies_bf16();

}  // namespace plimsoll::engine
