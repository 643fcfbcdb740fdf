// Timelines as comparable text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::tests {

// One line per event, without block ids of the producer: "+1024 #3" allocates the fourth block,
// "-1024 #3" releases it. Releases between two other events have no order among themselves: they
// are sorted. Operation names and tags are left out.
class EventLines {
 public:
  explicit EventLines(const timeline::Timeline& timeline) {
    for (const timeline::Event& event : timeline.events) add(event);
    flush();
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  void add(const timeline::Event& event) {
    switch (event.kind) {
      case timeline::EventKind::kAllocate:
        flush();
        lines_.push_back(fmt::format("+{} #{}", event.bytes, numbers_.size()));
        numbers_.emplace(event.block, numbers_.size());
        break;
      case timeline::EventKind::kRelease:
        released_.emplace_back(numbers_.at(event.block), event.bytes);
        break;
      case timeline::EventKind::kBeginPhase:
        flush();
        lines_.push_back(fmt::format("phase {}", timeline::name(event.phase.phase)));
        break;
      case timeline::EventKind::kEndPhase:
      case timeline::EventKind::kRetag:
        break;
    }
  }

  void flush() {
    std::sort(released_.begin(), released_.end());
    for (const auto& [number, bytes] : released_) {
      lines_.push_back(fmt::format("-{} #{}", bytes, number));
    }
    released_.clear();
  }

  std::vector<std::string> lines_;
  std::map<timeline::BlockId, std::size_t> numbers_;
  std::vector<std::pair<std::size_t, std::int64_t>> released_;
};

inline std::vector<std::string> event_lines(const timeline::Timeline& timeline) {
  return EventLines(timeline).take();
}

// "" when equal, else the first difference with its surroundings.
inline std::string first_difference(const std::vector<std::string>& expected,
                                    const std::vector<std::string>& actual) {
  const auto [at_expected, at_actual] =
      std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
  if (at_expected == expected.end() && at_actual == actual.end()) return "";
  const auto at = static_cast<std::size_t>(at_expected - expected.begin());
  std::string text = "first difference at line " + std::to_string(at) + " (expected | actual)\n";
  for (std::size_t line = at < 3 ? 0 : at - 3; line < at + 6; ++line) {
    const auto read = [&](const auto& lines) { return line < lines.size() ? lines[line] : "end"; };
    text += "  " + read(expected) + " | " + read(actual) + "\n";
  }
  return text;
}

}  // namespace plimsoll::tests
