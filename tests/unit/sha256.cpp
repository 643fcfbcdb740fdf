// FIPS 180-4, section 6.2. The constants are the first 32 bits of the fractional parts of cube and
// square roots of primes (sections 4.2.2 and 5.3.3) and are computed as such.
#include "tests/unit/sha256.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace plimsoll::test {
namespace {

using Word = std::uint32_t;

bool is_prime(int n) {
  for (int d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

// The fraction of `root` (of the n-th prime), 32 bits of it.
template <std::size_t kCount>
std::array<Word, kCount> fractions(long double (*root)(long double)) {
  std::array<Word, kCount> words{};
  int prime = 1;
  for (Word& word : words) {
    do {
      ++prime;
    } while (!is_prime(prime));
    const long double value = root(static_cast<long double>(prime));
    word = static_cast<Word>((value - std::floor(value)) * 4294967296.0L);
  }
  return words;
}

void mix(std::array<Word, 8>& state, const unsigned char* block) {
  static const auto kConstants = fractions<64>([](long double x) { return std::cbrt(x); });
  std::array<Word, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 4; ++j) w[i] = (w[i] << 8U) | block[4 * i + j];
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const Word s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3U);
    const Word s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10U);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const Word s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const Word first = h + s1 + ((e & f) ^ (~e & g)) + kConstants[i] + w[i];
    const Word s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const Word second = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const std::array<Word, 8> sums = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += sums[i];
}

}  // namespace

std::string sha256(std::string_view text) {
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) {
    padded += static_cast<char>((bits >> static_cast<unsigned>(shift)) & 0xffU);
  }
  auto state = fractions<8>([](long double x) { return std::sqrt(x); });
  for (std::size_t at = 0; at < padded.size(); at += 64) {
    mix(state, reinterpret_cast<const unsigned char*>(padded.data()) + at);
  }
  std::string digits;
  for (const Word word : state) digits += fmt::format("{:08x}", word);
  return digits;
}

}  // namespace plimsoll::test
