// The same function for processors with AVX2, which reads twice as many bytes at a time. The pragma has to come
// before every header, so this file is never part of a batch. What it defines may not run on other processors.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2")
#define XXH_INLINE_ALL
#include "plimsoll/checkpoint/checksum_avx2.hpp"

#include <xxhash.h>

namespace plimsoll::checkpoint {

std::uint64_t checksum_avx2(const void* data, std::size_t bytes) {
  return XXH3_64bits(data, bytes);
}

}  // namespace plimsoll::checkpoint
#endif
