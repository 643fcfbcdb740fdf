#include "plimsoll/checkpoint/checksum.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "plimsoll/checkpoint/checksum_avx2.hpp"

// The library's functions become part of this file: nothing is left to link or to install.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace plimsoll::checkpoint {

struct Checksum::State {
  XXH3_state_t xxh;
};

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
#if PLIMSOLL_CHECKSUM_AVX2
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return checksum_avx2(bytes.data(), bytes.size());
#endif
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t checksum_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh); }
Checksum::~Checksum() = default;

void Checksum::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->xxh); }

std::string checksum_text(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

std::optional<std::uint64_t> parse_checksum(std::string_view text) {
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != 16 || !std::all_of(text.begin(), text.end(), digit)) return std::nullopt;
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

}  // namespace plimsoll::checkpoint
