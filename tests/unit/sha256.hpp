// SHA-256 of a text, for comparing long lists with a truth file's hash.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::test {

// 64 hexadecimal digits.
std::string sha256(std::string_view text);

}  // namespace plimsoll::test
