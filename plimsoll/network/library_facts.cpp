#include "plimsoll/network/library_facts.hpp"

#include <array>

#include "plimsoll/network/cuda_fact_list.hpp"

namespace plimsoll::network {

std::string_view name(Backend backend) { return backend == Backend::kCpu ? "cpu" : "cuda"; }

std::string_view name(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kFlash:
      return "flash";
    case AttentionKernel::kEfficient:
      return "efficient";
    case AttentionKernel::kEager:
      return "eager";
    case AttentionKernel::kMath:
      return "math";
  }
  return "?";
}

LibraryFacts cpu_facts(int threads) {
  LibraryFacts facts;
  facts.library = "libtorch 2.13.0 (CPU)";
  facts.threads = threads;
  return facts;
}

namespace {

// Tensor instructions for bf16, which flash and the memory-efficient kernel's bf16 need.
constexpr std::int64_t kAmpere = 80;
constexpr std::int64_t kHopper = 90;

void set_attention(LibraryFacts& facts, const Card& card) {
  const bool old = card.compute_capability > 0 && card.compute_capability < kAmpere;
  facts.flash_exists = !old;
  facts.efficient_reads_bf16 = !old;
  facts.flash_reads_masks = false;
  facts.flash_reads_wide = false;
  facts.efficient_exists = true;
  facts.attention_dropout = true;
  facts.flash_seed = {2, true};
  facts.efficient_seed = {1, false};
  facts.efficient_row_multiple = 32;
  facts.flash_scratch = false;
  facts.flash_backward_rows = 128;
}

// Bytes per handle and stream: ":4096:2:16:8" in KiB, and 32 MiB on Hopper.
constexpr std::int64_t kBlasWorkspace = (2 * 4096 + 8 * 16) * 1024;
constexpr std::int64_t kHopperBlasWorkspace = 8 * 4096 * 1024;
constexpr std::int64_t kBlasLtWorkspace = 1024 * 1024;

void set_libraries(LibraryFacts& facts, const Card& card) {
  const bool hopper = card.compute_capability == kHopper;
  facts.blas_workspace = hopper ? kHopperBlasWorkspace : kBlasWorkspace;
  facts.blas_handles = 2;
  facts.blas_lt_workspace = kBlasLtWorkspace;
  if (card.compute_capability == 0) facts.blas_workspace_evidence = Evidence::kAssumed;
}

}  // namespace

LibraryFacts cuda_facts(const Card& card) {
  LibraryFacts facts;
  facts.library = "PyTorch 2.13 (CUDA)";
  facts.backend = Backend::kCuda;
  facts.number_blocks = false;
  facts.cast_operands = false;
  facts.gelu_backward_reorders = false;
  facts.copy_blas_operands = false;
  facts.dropout_mask_of_input = false;
  facts.norm_statistics_fp32 = true;
  facts.rms_norm_fused = true;
  facts.layer_norm_backward_scratch = false;
  facts.batch_norm_scratch = false;
  facts.convolution_block = 0;
  set_attention(facts, card);
  facts.embedding_sort_above = 3072;
  facts.embedding_copies_first = true;
  facts.random_state_bytes = 0;
  facts.optimizer_lists = true;
  facts.step_counters_on_host = true;
  set_libraries(facts, card);
  return facts;
}

LibraryFacts facts_of(Backend backend) {
  return backend == Backend::kCpu ? cpu_facts() : cuda_facts();
}

std::span<const Fact> fact_list(Backend backend) {
  static constexpr std::array<Fact, 7> kCpu = {{
      {"numbers in arithmetic", "8 B + one element during the call", Evidence::kMeasured,
       "allocator log of libtorch 2.13.0"},
      {"operands of another dtype", "cast into temporaries", Evidence::kMeasured,
       "allocator log of libtorch 2.13.0"},
      {"norm statistics", "dtype of x; fp32 when the weight is fp32", Evidence::kMeasured,
       "saved-tensor log of libtorch 2.13.0"},
      {"rms_norm", "composite of ten operations", Evidence::kMeasured,
       "allocator log of libtorch 2.13.0"},
      {"flash attention", "saves q, k, v, output, logsumexp; tiled scratch per thread",
       Evidence::kMeasured, "allocator log of libtorch 2.13.0"},
      {"dropout", "mask of x's dtype", Evidence::kMeasured, "allocator log of libtorch 2.13.0"},
      {"3x3 convolution", "copies in blocks of 8 channels (fp32), else 9 values per pixel",
       Evidence::kMeasured, "allocator log of libtorch 2.13.0, oneDNN kept to AVX2"},
  }};
  if (backend == Backend::kCpu) return kCpu;
  return cuda_fact_list();
}

}  // namespace plimsoll::network
