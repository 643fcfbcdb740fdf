// Phase figures and peaks of a recorded run by plain counting, independently of PeakSink.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::test {

// What is alive after the first `count` events, by tag.
inline timeline::BytesByTag alive_after(const timeline::Timeline& recorded, std::size_t count) {
  timeline::BytesByTag alive{};
  const auto at = [&](timeline::Tag tag) -> std::int64_t& {
    return alive[static_cast<std::size_t>(tag)];
  };
  for (std::size_t i = 0; i < count; ++i) {
    const timeline::Event& e = recorded.events[i];
    switch (e.kind) {
      case timeline::EventKind::kAllocate:
        at(e.tag) += e.bytes;
        break;
      case timeline::EventKind::kRelease:
        at(e.tag) -= e.bytes;
        break;
      case timeline::EventKind::kRetag:
        at(e.tag) -= e.bytes;
        at(e.to) += e.bytes;
        break;
      case timeline::EventKind::kBeginPhase:
      case timeline::EventKind::kEndPhase:
        break;
    }
  }
  return alive;
}

// Current bytes after each event.
inline std::vector<std::int64_t> current_bytes(const timeline::Timeline& recorded) {
  std::vector<std::int64_t> result;
  std::int64_t current = 0;
  for (const timeline::Event& e : recorded.events) {
    if (e.kind == timeline::EventKind::kAllocate) current += e.bytes;
    if (e.kind == timeline::EventKind::kRelease) current -= e.bytes;
    result.push_back(current);
  }
  return result;
}

// One phase: its events are [first, last), with the borders themselves.
struct ListedPhase {
  timeline::PhaseKey key;
  std::size_t first = 0;
  std::size_t last = 0;
};

inline std::vector<ListedPhase> listed_phases(const timeline::Timeline& recorded) {
  std::vector<ListedPhase> result;
  for (std::size_t i = 0; i < recorded.events.size(); ++i) {
    const timeline::Event& e = recorded.events[i];
    if (e.kind == timeline::EventKind::kBeginPhase) result.push_back({e.phase, i, i});
    if (e.kind == timeline::EventKind::kEndPhase) result.back().last = i + 1;
  }
  return result;
}

inline std::vector<timeline::PhaseFigures> listed_figures(const timeline::Timeline& recorded) {
  const std::vector<std::int64_t> current = current_bytes(recorded);
  std::vector<timeline::PhaseFigures> result;
  for (const ListedPhase& phase : listed_phases(recorded)) {
    const auto begin = current.begin() + static_cast<std::ptrdiff_t>(phase.first);
    const auto end = current.begin() + static_cast<std::ptrdiff_t>(phase.last);
    result.push_back({phase.key, *begin, *(end - 1), *std::max_element(begin, end)});
  }
  return result;
}

// The first instant at which the phases of `step` hold most.
inline timeline::Peak listed_peak(const timeline::Timeline& recorded, std::int32_t step) {
  const std::vector<std::int64_t> current = current_bytes(recorded);
  timeline::Peak peak;
  for (const ListedPhase& phase : listed_phases(recorded)) {
    if (phase.key.step != step) continue;
    for (std::size_t i = phase.first; i < phase.last; ++i) {
      if (current[i] <= peak.bytes) continue;
      peak = {current[i], phase.key, recorded.events[i].operation, alive_after(recorded, i + 1)};
    }
  }
  return peak;
}

}  // namespace plimsoll::test
