// What a peak consists of, by tag.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::timeline {

struct AliveTag {
  Tag tag;
  std::int64_t bytes;
};
// The tags with bytes alive at a peak, largest first; their sum is the peak.
std::vector<AliveTag> alive_tags(const Peak& peak);

}  // namespace plimsoll::timeline
