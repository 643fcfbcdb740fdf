// The oracle of the conformance suite: inputs and their sums, computed without plimsoll's loops.
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/dist/conformance.hpp"

namespace plimsoll::test {
namespace {

using comm::DType;

// splitmix64
std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

std::uint64_t noise(int rank, std::int64_t index) {
  return scrambled(scrambled(static_cast<std::uint64_t>(rank) + 1) ^
                   static_cast<std::uint64_t>(index));
}

// A sign, an exponent of -12 .. 12 and 52 bits of mantissa, put together.
double real(int rank, std::int64_t index) {
  const std::uint64_t bits = noise(rank, index);
  const std::uint64_t sign = (bits & 0x800U) << 52;
  const std::uint64_t exponent = (1023 - 12 + bits % 25) << 52;
  return std::bit_cast<double>(sign | exponent | (bits >> 12));
}

// Any finite 16 bits, denormals and zeros among them.
std::uint16_t half_bits(DType dtype, int rank, std::int64_t index) {
  auto bits = static_cast<std::uint16_t>(noise(rank, index));
  const std::uint16_t exponent = dtype == DType::kFloat16 ? 0x7c00U : 0x7f80U;
  if ((bits & exponent) == exponent) bits = static_cast<std::uint16_t>(bits & ~0x4000U);
  return bits;
}

float half_value(DType dtype, std::uint16_t bits) {
  const bool is_half = dtype == DType::kFloat16;
  const int mantissa_bits = is_half ? 10 : 7;
  const int bias = is_half ? 15 : 127;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits & 0x7fff) >> mantissa_bits;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return static_cast<float>((bits & 0x8000) != 0 ? -magnitude : magnitude);
}

template <class Number>
void put(Number value, std::byte* to) {
  std::memcpy(to, &value, sizeof(value));
}

template <class Number, class ValueOf>
Number sum_of(int ranks, ValueOf&& value_of) {
  Number sum = value_of(0);
  for (int rank = 1; rank < ranks; ++rank) sum += value_of(rank);
  return sum;
}

}  // namespace

void write_element(DType dtype, int rank, std::int64_t index, std::byte* to) {
  switch (dtype) {
    case DType::kFloat32:
      return put(static_cast<float>(real(rank, index)), to);
    case DType::kFloat64:
      return put(real(rank, index), to);
    case DType::kFloat16:
    case DType::kBFloat16:
      return put(half_bits(dtype, rank, index), to);
    case DType::kInt64:
      return put(noise(rank, index), to);
    case DType::kUInt8:
      return put(static_cast<std::uint8_t>(noise(rank, index)), to);
  }
}

void write_sum(DType dtype, int ranks, std::int64_t index, std::byte* to) {
  switch (dtype) {
    case DType::kFloat32:
      return put(sum_of<float>(ranks, [&](int r) { return static_cast<float>(real(r, index)); }),
                 to);
    case DType::kFloat64:
      return put(sum_of<double>(ranks, [&](int r) { return real(r, index); }), to);
    case DType::kFloat16:
    case DType::kBFloat16:
      return put(sum_of<float>(
                     ranks, [&](int r) { return half_value(dtype, half_bits(dtype, r, index)); }),
                 to);
    case DType::kInt64:
      return put(sum_of<std::uint64_t>(ranks, [&](int r) { return noise(r, index); }), to);
    case DType::kUInt8:
      break;
  }
}

}  // namespace plimsoll::test
