// Sums of several arrays, in the order of the ranks that hold them [Note: Sums in rank order].
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/comm/dtype.hpp"

namespace plimsoll::comm {

// output[i] = sources[0][i] + sources[1][i] + ... for `count` elements of `dtype`; the output has
// sum_dtype(dtype). The output may be one of the sources when the types are equal. Sources need the
// alignment of their type only.
void sum_in_rank_order(std::span<const void* const> sources, std::int64_t count, DType dtype,
                       void* output);

// The fp32 value of 16 bits of kFloat16 or kBFloat16; exact, denormals and NaN included.
float widened(std::uint16_t bits, DType dtype);

}  // namespace plimsoll::comm
