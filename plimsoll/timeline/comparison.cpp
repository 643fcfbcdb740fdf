#include "plimsoll/timeline/comparison.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll::timeline {
namespace {

// Builds comparable phases from a replay.
class Grouper {
 public:
  Grouper(const Timeline& timeline, std::int64_t base) : timeline_(timeline), current_(base) {}

  std::vector<PhaseEvents> run() {
    for (const Event& event : timeline_.events) take(event);
    return std::move(phases_);
  }

 private:
  void take(const Event& event) {
    switch (event.kind) {
      case EventKind::kBeginPhase:
        phases_.push_back({{event.phase, current_, current_, current_}, {}});
        open_ = true;
        in_model_ = event.phase.phase == Phase::kModel;
        return;
      case EventKind::kEndPhase:
        close();
        return;
      case EventKind::kAllocate:
        return allocate(event);
      case EventKind::kRelease:
        current_ -= event.bytes;
        if (in_model_)
          numbers_.erase(event.block);
        else if (open_)
          released_.push_back(number(event.block));
        return;
      case EventKind::kRetag:
        return;
    }
  }

  void allocate(const Event& event) {
    current_ += event.bytes;
    const std::uint32_t block = number(event.block);
    static_cast<void>(block);
    if (!open_) return;
    phases_.back().figures.peak = std::max(phases_.back().figures.peak, current_);
    push(event.bytes, timeline_.operations.empty() ? "" : timeline_.operations[event.operation]);
  }

  void close() {
    if (!open_) return;
    phases_.back().figures.end = current_;
    if (in_model_) renumber();
    push(0, "end of phase");
    open_ = in_model_ = false;
  }

  // How a run fills its parameters is its own affair: only what is left of phase "model" counts.
  void renumber() {
    std::vector<std::pair<std::uint32_t, BlockId>> alive;
    for (const auto& [block, number] : numbers_) alive.emplace_back(number, block);
    std::sort(alive.begin(), alive.end());
    numbers_.clear();
    next_number_ = 0;
    for (const auto& [old_number, block] : alive) number(block);
  }

  void push(std::int64_t bytes, std::string operation) {
    std::sort(released_.begin(), released_.end());
    phases_.back().groups.push_back({bytes, std::move(operation), std::exchange(released_, {})});
  }

  std::uint32_t number(BlockId block) {
    const auto [found, added] = numbers_.try_emplace(block, next_number_);
    if (added) ++next_number_;
    return found->second;
  }

  const Timeline& timeline_;
  std::int64_t current_;
  bool open_ = false;
  bool in_model_ = false;
  std::uint32_t next_number_ = 0;
  std::vector<PhaseEvents> phases_;
  std::vector<std::uint32_t> released_;
  std::unordered_map<BlockId, std::uint32_t> numbers_;
};

std::string to_text(const EventGroup& group) {
  std::string text = group.bytes > 0 ? fmt::format("allocates {} B", group.bytes) : "end of phase";
  if (!group.released.empty()) {
    text += fmt::format(" after releasing {}", fmt::join(group.released, ", "));
  }
  return text;
}

std::optional<Difference> figures_differ(const PhaseFigures& a, const PhaseFigures& b) {
  const auto difference = [&](const char* what, std::int64_t x, std::int64_t y) {
    return Difference{a.key, what, "", fmt::format("{} B", x),
                      fmt::format("{} B ({:+} B)", y, y - x)};
  };
  if (a.key.phase != Phase::kModel && a.start != b.start)
    return difference("start", a.start, b.start);
  if (a.key.phase != Phase::kModel && a.peak != b.peak) return difference("peak", a.peak, b.peak);
  if (a.end != b.end) return difference("end", a.end, b.end);
  return std::nullopt;
}

std::optional<Difference> events_differ(const PhaseEvents& a, const PhaseEvents& b) {
  if (a.figures.key.phase == Phase::kModel) return std::nullopt;
  static const EventGroup kNothing;
  const std::size_t count = std::max(a.groups.size(), b.groups.size());
  for (std::size_t i = 0; i < count; ++i) {
    const EventGroup& x = i < a.groups.size() ? a.groups[i] : kNothing;
    const EventGroup& y = i < b.groups.size() ? b.groups[i] : kNothing;
    if (x.bytes == y.bytes && x.released == y.released) continue;
    return Difference{a.figures.key, fmt::format("event {} of {}", i, a.groups.size()),
                      fmt::format("{} | {}", x.operation, y.operation), to_text(x), to_text(y)};
  }
  return std::nullopt;
}

}  // namespace

std::vector<PhaseEvents> comparable(const Timeline& timeline, std::int64_t base) {
  return Grouper(timeline, base).run();
}

std::string to_text(const Difference& d) {
  return fmt::format("step {} micro-batch {} {}: {} at [{}]: expected {}, seen {}", d.phase.step,
                     d.phase.micro_batch, name(d.phase.phase), d.what, d.operation, d.expected,
                     d.seen);
}

std::optional<Difference> first_difference(const std::vector<PhaseEvents>& expected,
                                           const std::vector<PhaseEvents>& seen, Depth depth) {
  for (std::size_t i = 0; i < std::min(expected.size(), seen.size()); ++i) {
    const PhaseEvents& a = expected[i];
    const PhaseEvents& b = seen[i];
    if (!(a.figures.key == b.figures.key)) {
      return Difference{a.figures.key, "phase", "", std::string(name(a.figures.key.phase)),
                        std::string(name(b.figures.key.phase))};
    }
    if (depth == Depth::kEvents) {
      if (auto d = events_differ(a, b)) return d;
    }
    if (auto d = figures_differ(a.figures, b.figures)) return d;
  }
  if (expected.size() != seen.size()) {
    return Difference{{},
                      "number of phases",
                      "",
                      fmt::format("{}", expected.size()),
                      fmt::format("{}", seen.size())};
  }
  return std::nullopt;
}

}  // namespace plimsoll::timeline
