// A hash for telling names apart: the same on every machine and in every version, not for security.
#pragma once

#include <cstdint>
#include <string_view>

namespace plimsoll {

// FNV-1a, 64 bit (Fowler, Noll, Vo). Another `seed` gives another, unrelated sequence of hashes.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t seed = 0) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ seed;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace plimsoll
