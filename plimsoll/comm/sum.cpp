#include "plimsoll/comm/sum.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "plimsoll/base/error.hpp"

namespace plimsoll::comm {
namespace {

// A partial sum of so many elements stays in the first-level cache while the sources stream by.
constexpr std::int64_t kBlock = 2048;

struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

inline float value_of(BFloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

// Without branches, so that the loops become vector code: all three results, then a choice.
inline float value_of(Float16 x) {
  const std::uint32_t sign = (x.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = x.bits & 0x7fffU;
  const float denormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F;
  const std::uint32_t normal = (magnitude << 13) + (112U << 23);
  const std::uint32_t special = (magnitude << 13) | 0x7f800000U;  // infinity, NaN
  std::uint32_t bits = magnitude < 0x0400U ? std::bit_cast<std::uint32_t>(denormal) : normal;
  bits = magnitude >= 0x7c00U ? special : bits;
  return std::bit_cast<float>(bits | sign);
}

inline float value_of(float x) { return x; }
inline double value_of(double x) { return x; }
// Two's complement: sums wrap instead of being undefined.
inline std::uint64_t value_of(std::uint64_t x) { return x; }

// `out` may be one of the operands, element for element: no iteration depends on another, which the
// compiler could not know.
template <class In, class Out>
void widen(const In* a, std::int64_t n, Out* out) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) out[i] = value_of(a[i]);
}

template <class In, class Out>
void add_two(const In* a, const In* b, std::int64_t n, Out* out) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) out[i] = value_of(a[i]) + value_of(b[i]);
}

template <class In, class Out>
void add_to(const Out* partial, const In* a, std::int64_t n, Out* out) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) out[i] = partial[i] + value_of(a[i]);
}

// The output is written in the last pass alone, when every source of the block has been read up to
// the element at hand: so it may be any of them.
template <class In, class Out>
void sum_all(std::span<const void* const> sources, std::int64_t count, Out* output) {
  const auto source = [&](std::size_t k) { return static_cast<const In*>(sources[k]); };
  const std::size_t last = sources.size() - 1;
  if (last == 0) return widen(source(0), count, output);
  if (last == 1) return add_two(source(0), source(1), count, output);
  alignas(64) Out partial[kBlock];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, count - begin);
    add_two(source(0) + begin, source(1) + begin, n, partial);
    for (std::size_t k = 2; k < last; ++k) add_to(partial, source(k) + begin, n, partial);
    add_to(partial, source(last) + begin, n, output + begin);
  }
}

}  // namespace

void sum_in_rank_order(std::span<const void* const> sources, std::int64_t count, DType dtype,
                       void* output) {
  check(!sources.empty(), "a sum of nothing");
  switch (dtype) {
    case DType::kFloat32:
      return sum_all<float>(sources, count, static_cast<float*>(output));
    case DType::kFloat64:
      return sum_all<double>(sources, count, static_cast<double*>(output));
    case DType::kFloat16:
      return sum_all<Float16>(sources, count, static_cast<float*>(output));
    case DType::kBFloat16:
      return sum_all<BFloat16>(sources, count, static_cast<float*>(output));
    case DType::kInt64:
      return sum_all<std::uint64_t>(sources, count, static_cast<std::uint64_t*>(output));
    case DType::kUInt8:
      break;
  }
  throw InternalError("[comm] uint8 cannot be summed");
}

float widened(std::uint16_t bits, DType dtype) {
  return dtype == DType::kFloat16 ? value_of(Float16{bits}) : value_of(BFloat16{bits});
}

}  // namespace plimsoll::comm
