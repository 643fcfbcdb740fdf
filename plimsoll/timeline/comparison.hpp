// Comparing two runs of the same step: figures per phase, and event by event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::timeline {

// One allocation together with the releases just before it. Blocks are numbered by their first
// appearance, so that two runs can be compared; the last group of a phase has no allocation.
struct EventGroup {
  std::int64_t bytes = 0;  // 0: end of the phase
  std::string operation;
  std::vector<std::uint32_t> released;  // sorted block numbers
};

struct PhaseEvents {
  PhaseFigures figures;
  std::vector<EventGroup> groups;
};

// The stream in comparable form. `base` is added to all figures (what a meter calls start bytes).
std::vector<PhaseEvents> comparable(const Timeline& timeline, std::int64_t base = 0);

struct Difference {
  PhaseKey phase;
  std::string what;       // "start", "peak", "event 17", ...
  std::string operation;  // where, when known
  std::string expected;
  std::string seen;
};
std::string to_text(const Difference& difference);

enum class Depth : std::uint8_t {
  kFigures,  // start, end and peak of every phase
  kEvents,   // and every allocation with the releases before it, in order
};

// The first difference between `expected` and `seen`, or none. Phase "model" is compared by its end
// only: how a run fills its parameters is its own affair.
std::optional<Difference> first_difference(const std::vector<PhaseEvents>& expected,
                                           const std::vector<PhaseEvents>& seen, Depth depth);

}  // namespace plimsoll::timeline
