// ASCII lower case: names on the command line are the same in upper and lower case.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::formats {

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace plimsoll::formats
