// XXH3 compiled for AVX2. Only for checksum.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::checkpoint {

// Of this processor and this build.
bool has_avx2();
// Only where has_avx2().
std::uint64_t checksum_avx2(const void* data, std::size_t bytes);

}  // namespace plimsoll::checkpoint
