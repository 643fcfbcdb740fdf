// XXH3 compiled for AVX2. Only for checksum.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::checkpoint {

// Whether this build has it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PLIMSOLL_CHECKSUM_AVX2 1
#else
#define PLIMSOLL_CHECKSUM_AVX2 0
#endif

// Only on processors with AVX2.
std::uint64_t checksum_avx2(const void* data, std::size_t bytes);

}  // namespace plimsoll::checkpoint
