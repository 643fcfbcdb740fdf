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

// The state of a random generator that an attention kernel saves: two tensors of int64.
struct SeedTensors {
  std::int64_t words = 0;  // elements of the first one; the second has one. 0: no such tensors
  bool on_device = true;   // otherwise in host memory: saved, but no bytes of the device
};

struct LibraryFacts {
  std::string library;  // "libtorch 2.13.0 (CPU)"
  Backend backend = Backend::kCpu;
  int threads = 1;

  // --- arithmetic

  // `tensor op number` wraps the number as an 8-byte tensor and casts it: two blocks during the
  // call. On CUDA the number stays on the host.
  bool number_blocks = true;
  // Operands of another dtype are cast into temporaries (CPU) or converted in registers (CUDA).
  bool cast_operands = true;
  // The exact fp32 gelu's backward reorders a gradient of another layout through two copies.
  bool gelu_backward_reorders = true;
  // Products copy operands that BLAS cannot read.
  bool copy_blas_operands = true;
  // Dropout is mask * x with a mask of x's dtype; otherwise one kernel with a bool mask.
  bool dropout_mask_of_input = true;

  // --- norms and convolutions

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

  // --- attention: which kernels exist, what they save, what they need

  bool flash_reads_masks = true;  // tensors beside the causal mask
  bool flash_exists = true;
  bool flash_reads_wide = true;   // fp32 and fp64 too; otherwise 16-bit only
  bool efficient_exists = false;  // for all dtypes but fp64
  bool efficient_reads_bf16 = true;
  bool efficient_grouped = false;  // reads fewer key heads than query heads
  // Kernels drop probabilities by themselves; otherwise dropout takes the math kernel.
  bool attention_dropout = false;
  SeedTensors flash_seed;
  SeedTensors efficient_seed;
  // Rows of the saved logsumexp are rounded up to a multiple of this (memory-efficient kernel).
  std::int64_t efficient_row_multiple = 1;
  // Flash attention's scratch per thread (libtorch's CPU tiling).
  bool flash_scratch = true;
  // Flash's backward sums dq in fp32, rows rounded up to a multiple of this, and expands grouped key
  // heads. 0: it does neither.
  std::int64_t flash_backward_rows = 0;
  // Side of the tiles in which the memory-efficient backward sums dq in fp32.
  std::int64_t efficient_tile = 64;

  // --- embedding and checkpoints

  // Embedding's backward sorts more indices than this, and sums runs of equal ones. 0: never.
  std::int64_t embedding_sort_above = 0;
  // A gradient that is not contiguous is copied before the table's gradient exists, not after.
  bool embedding_copies_first = false;
  // A generator's state that a checkpoint keeps on this device. 0: it lies elsewhere.
  std::int64_t random_state_bytes = 5056;

  // --- optimizers of torch.optim

  // All parameters are updated together, by lists of tensors.
  bool optimizer_lists = false;
  // Step counters of the loops that are not fused lie in host memory.
  bool step_counters_on_host = false;

  // --- workspaces that libraries take from the device's allocator and keep

  std::int64_t blas_workspace = 0;     // bytes per handle and stream
  std::int64_t blas_handles = 0;       // threads that multiply: forward's and backward's
  std::int64_t blas_lt_workspace = 0;  // bytes, for products with a bias
  // Whether blas_workspace follows from a known card.
  Evidence blas_workspace_evidence = Evidence::kSource;
};

// libtorch 2.13 on the CPU, as measured. `threads` multiplies scratch.
LibraryFacts cpu_facts(int threads = 1);

// The card as far as the library looks at it.
struct Card {
  std::int64_t compute_capability = 0;  // ten times major plus minor; 0: unknown, planned as 8.6
};

// PyTorch's CUDA kernels on one card. Saved tensors as in the published reference run; what neither a
// run nor the source says is listed by fact_list with evidence kAssumed.
LibraryFacts cuda_facts(const Card& card = {});

// Facts of a backend where neither threads nor card matter.
LibraryFacts facts_of(Backend backend);

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
