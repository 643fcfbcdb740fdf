#include "plimsoll/timeline/alive_tags.hpp"

#include <algorithm>

namespace plimsoll::timeline {

std::vector<AliveTag> alive_tags(const Peak& peak) {
  std::vector<AliveTag> tags;
  for (std::size_t i = 0; i < peak.alive.size(); ++i) {
    if (peak.alive[i] != 0) tags.push_back({static_cast<Tag>(i), peak.alive[i]});
  }
  std::stable_sort(tags.begin(), tags.end(),
                   [](const AliveTag& a, const AliveTag& b) { return a.bytes > b.bytes; });
  return tags;
}

}  // namespace plimsoll::timeline
