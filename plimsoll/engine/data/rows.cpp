#include "plimsoll/engine/data/rows.hpp"

#include <bit>
#include <cmath>

namespace plimsoll::engine {
namespace {

// The output function of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on every bit.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// A Feistel network on 2 * half bits: a bijection whatever the round function is.
std::uint64_t feistel(std::uint64_t x, int half, std::uint64_t key) {
  constexpr std::uint64_t kRounds = 6;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  std::uint64_t left = x >> half;
  std::uint64_t right = x & mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t next = left ^ (mixed(right ^ mixed(key + round)) & mask);
    left = right;
    right = next;
  }
  return left << half | right;
}

}  // namespace

Split split_tokens(std::int64_t tokens, double held_out) {
  const auto kept = static_cast<std::int64_t>(std::floor(static_cast<double>(tokens) * held_out));
  return {{0, tokens - kept}, {tokens - kept, kept}};
}

// The network works on the next even power of two, at most 4 times as many: values outside are sent
// through again until they fall inside (cycle walking), which keeps the bijection.
std::int64_t shuffled(std::int64_t position, std::int64_t rows, std::uint64_t seed,
                      std::int64_t epoch) {
  const auto count = static_cast<std::uint64_t>(rows);
  const auto bits = static_cast<int>(std::bit_width(count - 1));
  const int half = bits < 2 ? 1 : (bits + 1) / 2;
  const std::uint64_t key = mixed(mixed(seed) + static_cast<std::uint64_t>(epoch));
  auto x = static_cast<std::uint64_t>(position);
  do {
    x = feistel(x, half, key);
  } while (x >= count);
  return static_cast<std::int64_t>(x);
}

std::int64_t RowOrder::row(std::int64_t cursor, std::int64_t micro_batch, std::int64_t rank,
                           std::int64_t b) const {
  const std::int64_t position = cursor + (micro_batch * ranks + rank) * batch + b;
  return shuffled(position % rows, rows, seed, position / rows);
}

}  // namespace plimsoll::engine
