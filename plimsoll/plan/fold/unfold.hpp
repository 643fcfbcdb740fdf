// From the events of a short network to those of the whole one [Note: folding].
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plimsoll/plan/fold/folded_network.hpp"
#include "plimsoll/plan/fold/sections.hpp"
#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::plan::fold {

class Unfolding {
 public:
  // `brief`: a recorded walk of folded.network(). None when it is not periodic: the repeated section of a pass and the
  // next one differ in an event, or something outside of passes touches a block of theirs.
  static std::optional<Unfolding> of(const FoldedNetwork& folded, const timeline::Timeline& brief);

  // The events of the whole network's walk. Blocks are numbered from 1 in the order of their allocation.
  void push_into(timeline::Sink& sink) const;

 private:
  // A block by its birth: the pass it was made in, and there the period and which of its blocks it is. In a
  // section periods are relative to the section's, else they are the whole network's.
  struct Block {
    std::int32_t pass = Segment::kOutside;
    std::int32_t period = 0;
    std::uint32_t index = 0;
    bool operator==(const Block&) const = default;
  };
  // In a section of period p: operation + stride (P - p) for the same section of period P.
  struct Item {
    timeline::Event event;  // block and operation are those below
    Block block;
    std::int64_t operation = 0;
    std::int64_t stride = 0;
  };
  class Encoder;
  class Emitter;

  std::int32_t inner_ = 0;
  std::int32_t passes_ = 0;
  std::vector<Segment> segments_;
  std::vector<Item> items_;  // by event
};

}  // namespace plimsoll::plan::fold
