// What one rank exchanges with the others in one step.
#pragma once

#include <cstdint>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::plan {

// Collectives of one kind in one step, and the bytes that a rank takes from others in them
// [Note: traffic].
struct CollectiveCount {
  std::int64_t units = 0;
  std::int64_t bytes = 0;
  bool operator==(const CollectiveCount&) const = default;
};

struct StepTraffic {
  CollectiveCount gathers;     // parameters before use: stage 3
  CollectiveCount reductions;  // gradients: all stages at R >= 2
  CollectiveCount updates;     // updated parameters: stages 1 and 2
  std::int64_t bytes() const {
    return checked_add(checked_add(gathers.bytes, reductions.bytes), updates.bytes);
  }
  bool operator==(const StepTraffic&) const = default;
};

}  // namespace plimsoll::plan
