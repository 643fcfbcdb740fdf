#include "plimsoll/network/cuda_fact_list.hpp"

#include <array>

namespace plimsoll::network {
namespace {

constexpr std::string_view kReferenceRun = "published reference run, PyTorch 2.8, RTX 3090";

// What attention's kernels are, save and need.
constexpr Fact kAttention[] = {
    {"attention kernel",
     "flash for 16 bit (from Ampere on), memory-efficient for fp32, math for fp64",
     Evidence::kSource, "transformers/cuda/sdp_utils.cpp, order flash, efficient, math"},
    {"attention under a mask tensor", "memory-efficient: flash knows only its own causal mask",
     Evidence::kSource, "transformers/cuda/sdp_utils.cpp, can_use_flash_attention"},
    {"grouped key heads where flash does not run", "math: the memory-efficient kernel refuses them",
     Evidence::kSource, "transformers/cuda/sdp_utils.cpp, can_use_mem_efficient_attention"},
    {"memory-efficient attention saves",
     "q, k, v, output, fp32 logsumexp with rows padded to 32, seed and offset on the host",
     Evidence::kMeasured, kReferenceRun},
    {"memory-efficient attention's backward",
     "fp32: grad x output and its sums; 16 bit: the sums alone", Evidence::kSource,
     "transformers/cuda/attention_backward.cu, delta"},
    {"flash attention saves",
     "q, k, v, output, fp32 logsumexp, 16 + 8 bytes of generator state on the device",
     Evidence::kSource, "transformers/cuda/flash_attn/flash_api.cpp, mha_fwd"},
    {"flash attention's backward",
     "fp32 dq and row sums, rows to 128, heads to 32 (64 above 128); grouped dk, dv expanded",
     Evidence::kSource, "transformers/cuda/flash_attn/flash_api.cpp, mha_bwd"},
    {"memory-efficient attention's dq",
     "summed in fp32 tiles of 64 x 64 with 16 bytes each; other kernels have other tiles",
     Evidence::kAssumed, "mem_eff_attention/kernel_backward.h, workspace_elements_gq"},
    {"flash attention split over keys",
     "not counted; happens while B N ceil(T/64) < 1.6 x multiprocessors", Evidence::kAssumed,
     "transformers/cuda/flash_attn/flash_api.cpp, num_splits_heuristic"},
    {"head sizes that are no multiple of 8", "padded copies for flash are not counted",
     Evidence::kAssumed, "transformers/attention.cpp, pad_last_dim"},
    {"attention on Hopper and Blackwell", "planned as flash; cuDNN's kernel may run instead",
     Evidence::kAssumed, "transformers/cuda/sdp_utils.cpp, check_prefer_cudnn_attention"},
};

constexpr Fact kOtherKernels[] = {
    {"norm statistics", "fp32", Evidence::kSource, "native/cuda/layer_norm_kernel.cu"},
    {"rms_norm", "one kernel; saves x, weight, rstd (composite before PyTorch 2.9)",
     Evidence::kSource, "native/cuda/layer_norm_kernel.cu, pull request 153666"},
    {"dropout", "one kernel with a bool mask", Evidence::kSource, "native/cuda/Dropout.cu"},
    {"embedding's backward",
     "above 3,072 indices: sorted copies, and sums of runs of at most 10 in fp32",
     Evidence::kSource, "native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu"},
    {"numbers and dtypes", "no temporaries", Evidence::kSource, "native/cuda/Loops.cuh"},
    {"norms' backward above 65,536 rows", "partial sums are not counted", Evidence::kAssumed,
     "native/cuda/layer_norm_kernel.cu, LaunchGammaBetaBackwardCUDAKernel"},
    {"scratch of sorts, scans and reductions", "not counted", Evidence::kAssumed,
     "cuda/cub.cuh, native/cuda/Reduce.cuh"},
    {"convolution", "no workspace counted: cuDNN's depends on the algorithm it picks",
     Evidence::kAssumed, "native/cudnn/Conv_v8.cpp"},
};

constexpr Fact kOptimizersAndLibraries[] = {
    {"torch.optim on CUDA", "lists of all parameters: one full-size temporary of each",
     Evidence::kSource, "torch/optim/adamw.py, sgd.py, _default_to_fused_or_foreach"},
    {"step counters", "in host memory, unless the optimizer is fused", Evidence::kMeasured,
     kReferenceRun},
    {"cuBLAS workspace", "8.125 MiB per handle and stream, 32 MiB on Hopper", Evidence::kSource,
     "cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize"},
    {"cuBLAS handles", "two: the thread of forward and the thread of backward", Evidence::kMeasured,
     kReferenceRun},
    {"cuBLASLt workspace", "1 MiB, when a product with a bias runs", Evidence::kSource,
     "cuda/CublasHandlePool.cpp, parseCUDABlasLtWorkspaceSize"},
    {"caching allocator",
     "512 bytes; segments of 2 MiB up to 1 MiB, 20 MiB up to 10 MiB, then multiples of 2 MiB",
     Evidence::kSource, "c10/cuda/CUDACachingAllocator.cpp"},
    {"addresses of segments", "grow in the order of their allocation", Evidence::kAssumed,
     "the driver's choice; decides between free blocks of equal size"},
};

constexpr auto kAll = [] {
  std::array<Fact,
             std::size(kAttention) + std::size(kOtherKernels) + std::size(kOptimizersAndLibraries)>
      all{};
  std::size_t n = 0;
  for (const Fact& fact : kAttention) all[n++] = fact;
  for (const Fact& fact : kOtherKernels) all[n++] = fact;
  for (const Fact& fact : kOptimizersAndLibraries) all[n++] = fact;
  return all;
}();

}  // namespace

std::span<const Fact> cuda_fact_list() { return kAll; }

}  // namespace plimsoll::network
