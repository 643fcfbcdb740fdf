// How well a fact is known. Every figure that did not follow from the user's input carries one.
#pragma once

#include <cstdint>
#include <string_view>

namespace plimsoll {

enum class Evidence : std::uint8_t {
  kMeasured,  // seen on a run or a card, byte by byte where bytes are meant
  kSource,    // stated by source code, documentation or a data sheet
  kAssumed,   // inferred; reports say what rests on it
};
std::string_view name(Evidence evidence);

}  // namespace plimsoll
