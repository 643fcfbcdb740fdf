// Is a text UTF-8? JSON must be; the check comes first so that the message can name the byte.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace plimsoll::formats {

// Offset of the first byte that does not belong to valid UTF-8 (overlong forms and surrogates
// included), or nothing.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

}  // namespace plimsoll::formats
