#include "plimsoll/formats/utf8.hpp"

#include <cstdint>

namespace plimsoll::formats {
namespace {

// How a sequence goes on after its lead byte: how many bytes, and the range of the first of them.
struct Continuation {
  std::size_t count = 0;
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;
};

std::optional<Continuation> after(std::uint8_t lead) {
  if (lead < 0x80) return Continuation{};
  if (lead >= 0xC2 && lead <= 0xDF) return Continuation{.count = 1};
  if (lead == 0xE0) return Continuation{.count = 2, .low = 0xA0};
  if (lead == 0xED) return Continuation{.count = 2, .high = 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return Continuation{.count = 2};
  if (lead == 0xF0) return Continuation{.count = 3, .low = 0x90};
  if (lead >= 0xF1 && lead <= 0xF3) return Continuation{.count = 3};
  if (lead == 0xF4) return Continuation{.count = 3, .high = 0x8F};
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto next = after(static_cast<std::uint8_t>(text[i]));
    if (!next) return i;
    for (std::size_t k = 1; k <= next->count; ++k) {
      if (i + k >= text.size()) return i;
      const auto byte = static_cast<std::uint8_t>(text[i + k]);
      const bool first = k == 1;
      if (byte < (first ? next->low : 0x80) || byte > (first ? next->high : 0xBF)) return i;
    }
    i += next->count + 1;
  }
  return std::nullopt;
}

}  // namespace plimsoll::formats
