// What depends on the library's version, backend, thread count or card, as data.
//
// Rules never branch on "is this CUDA": they ask a fact. Each fact carries its evidence.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/evidence.hpp"

namespace plimsoll::network {

using plimsoll::Evidence;
using plimsoll::name;

enum class Backend : std::uint8_t { kCpu, kCuda };
std::string_view name(Backend backend);

// Which implementation of scaled dot product attention runs.
enum class AttentionKernel : std::uint8_t {
  kFlash,      // tiles; saves q, k, v, output and the logsumexp per row
  kEfficient,  // CUDA's memory-efficient kernel: as flash, logsumexp padded
  kMath,       // products and a softmax; saves the S x S matrices
  kEager,      // transformers' own single operations instead of one call of the library
};
std::string_view name(AttentionKernel kernel);

struct LibraryFacts {
  std::string library;  // "libtorch 2.13.0 (CPU)"
  Backend backend = Backend::kCpu;
  int threads = 1;

  // `tensor op number` wraps the number as an 8-byte tensor and casts it: two blocks during the
  // call. On CUDA the number stays on the host.
  bool number_blocks = true;
  // Operands of another dtype are cast into temporaries (CPU) or converted in registers (CUDA).
  bool cast_operands = true;
  // Mean and rstd of a 16-bit norm are kept in fp32 even when the weight is 16-bit.
  bool norm_statistics_fp32 = false;
  // rms_norm is one kernel that saves x, weight and rstd; otherwise a composite.
  bool rms_norm_fused = false;
  // native_layer_norm's backward keeps 2 * threads rows of scratch.
  bool layer_norm_backward_scratch = true;
  // Batch norm keeps sums per channel during the call, and its backward makes its result twice.
  bool batch_norm_scratch = true;
  // Convolutions copy their operands; oneDNN's copies have channels in blocks of this many. 0: no
  // copies counted.
  std::int64_t convolution_block = 8;
  // Dropout is mask * x with a mask of x's dtype; otherwise one kernel with a bool mask.
  bool dropout_mask_of_input = true;
  // Flash attention's scratch per thread (libtorch's CPU tiling).
  bool flash_scratch = true;
  // Attention kernels also save a seed and an offset, 8 bytes each.
  bool attention_saves_seed = false;
  // Rows of the saved logsumexp are rounded up to a multiple of this (memory-efficient kernel).
  std::int64_t efficient_row_multiple = 1;
};

// libtorch 2.13 on the CPU, as measured. `threads` multiplies scratch.
LibraryFacts cpu_facts(int threads = 1);

// PyTorch's CUDA kernels. Saved tensors as in the published reference run; what was not seen is
// listed by fact_list with evidence kAssumed.
LibraryFacts cuda_facts();

struct Fact {
  std::string_view what;
  std::string_view value;
  Evidence evidence;
  std::string_view source;
};

// The facts of a backend for people, with their evidence.
std::span<const Fact> fact_list(Backend backend);

// The library version whose byte-exact behaviour cpu_facts describes.
inline constexpr std::string_view kKnownLibtorch = "2.13.0";

}  // namespace plimsoll::network
