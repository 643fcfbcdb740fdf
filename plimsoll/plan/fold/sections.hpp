// Where in a short network's events the periods begin and end [Note: folding].
//
// A pass is a stretch of events that meets all inner periods one after the other: forward does, backward from the
// last to the first, and so does a loop over parameters. A section is what a pass does from the first event of
// one period to the first of the next; what the schedule does ahead for a neighbour is part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plimsoll/plan/fold/folded_network.hpp"
#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::plan::fold {

// Events [begin, end).
struct Segment {
  static constexpr std::int32_t kOutside = -1;
  std::int32_t pass = kOutside;  // passes count from 0
  std::int32_t period = 0;       // of a pass: 1 .. kInner
  bool down = false;             // of a pass: from the last period to the first
  std::size_t begin = 0;
  std::size_t end = 0;
};

// In order, without gaps. None when a pass leaves out a period or jumps.
std::optional<std::vector<Segment>> cut(const std::vector<Place>& places,
                                        const timeline::Timeline& brief);

}  // namespace plimsoll::plan::fold
