// How oneDNN, libtorch's library for convolutions on the CPU, arranges channels.
#pragma once

#include <cstdint>

namespace plimsoll::engine {

// Channels are copied in blocks of this many and the last block is padded: 16 with AVX-512, 8 with
// AVX2 or when ONEDNN_MAX_CPU_ISA keeps oneDNN to it [Note: Reference kernels].
std::int64_t convolution_block();

}  // namespace plimsoll::engine
