#include "plimsoll/network/library_facts.hpp"

#include <array>

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

LibraryFacts cuda_facts() {
  LibraryFacts facts;
  facts.library = "PyTorch 2.8 (CUDA)";
  facts.backend = Backend::kCuda;
  facts.number_blocks = false;
  facts.cast_operands = false;
  facts.norm_statistics_fp32 = true;
  facts.rms_norm_fused = true;
  facts.layer_norm_backward_scratch = false;
  facts.batch_norm_scratch = false;
  facts.convolution_block = 0;
  facts.dropout_mask_of_input = false;
  facts.flash_scratch = false;
  facts.attention_saves_seed = true;
  facts.efficient_row_multiple = 32;
  return facts;
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
  static constexpr std::array<Fact, 6> kCuda = {{
      {"fp32 attention", "memory-efficient kernel, logsumexp rows padded to 32, seed and offset",
       Evidence::kMeasured, "reference run, PyTorch 2.8 on an RTX 3090"},
      {"fp16/bf16 attention", "flash kernel: q, k, v, output, logsumexp, seed, offset",
       Evidence::kSource, "PyTorch's derivatives of _scaled_dot_product_flash_attention"},
      {"norm statistics", "fp32", Evidence::kSource, "PyTorch's CUDA layer_norm kernel"},
      {"rms_norm", "one kernel; saves x, weight, rstd", Evidence::kSource,
       "PyTorch's _fused_rms_norm"},
      {"dropout", "bool mask", Evidence::kSource, "PyTorch's native_dropout"},
      {"kernel scratch", "none counted; cuBLAS workspaces are a line of their own",
       Evidence::kAssumed, "not measured"},
  }};
  if (backend == Backend::kCpu) return kCpu;
  return kCuda;
}

}  // namespace plimsoll::network
