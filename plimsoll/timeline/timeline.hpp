// Timeline: the recorded stream of one run, and everything that is a function of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/timeline/event.hpp"

namespace plimsoll::timeline {

enum class EventKind : std::uint8_t { kAllocate, kRelease, kRetag, kBeginPhase, kEndPhase };

struct Event {
  std::int64_t bytes = 0;  // of the block, positive; 0 for borders of phases
  BlockId block = 0;
  OperationId operation = 0;
  EventKind kind = EventKind::kAllocate;
  Tag tag = Tag::kActivations;
  Tag to = Tag::kActivations;  // kRetag: the new tag
  PhaseKey phase;              // kBeginPhase
};

using BytesByTag = std::array<std::int64_t, static_cast<std::size_t>(Tag::kCount)>;

// One phase of one step. `start` and `end` are current bytes at its borders, `peak` the highest
// current bytes in between (at least start).
struct PhaseFigures {
  PhaseKey key;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t peak = 0;
};

// The highest instant: when, where, and what is alive then.
struct Peak {
  std::int64_t bytes = 0;
  PhaseKey phase;
  OperationId operation = 0;
  BytesByTag alive{};
};

// A recorded run. Plain data; copyable.
struct Timeline {
  std::vector<Event> events;
  std::vector<std::string> operations;  // names for OperationId; index 0 is ""
};

// Figures per phase, in order of time. Bytes alive before the first event count as 0.
std::vector<PhaseFigures> phase_figures(const Timeline& timeline);

// The peak over all events inside phases of `step` (or of every step when step < 0).
Peak find_peak(const Timeline& timeline, std::int32_t step = -1);

// Phase figures, current bytes and peak without keeping events: what a planner needs thousands of
// times. Equal to phase_figures / find_peak of a recording (a property test).
class PeakSink final : public Sink {
 public:
  void begin_phase(PhaseKey key) override;
  void end_phase() override;
  void allocate(BlockId, std::int64_t bytes, Tag tag, OperationId operation) override;
  void release(BlockId, std::int64_t bytes, Tag tag, OperationId) override;
  void retag(BlockId, std::int64_t bytes, Tag from, Tag to) override;

  std::int64_t current() const { return current_; }
  const BytesByTag& alive() const { return alive_; }
  const std::vector<PhaseFigures>& phases() const { return phases_; }
  // Peak over the phases of `step`; a PhaseFigures alone cannot say what was alive.
  const Peak& peak(std::int32_t step) const { return peaks_.at(static_cast<std::size_t>(step)); }

 private:
  std::int64_t current_ = 0;
  BytesByTag alive_{};
  std::vector<PhaseFigures> phases_;
  std::vector<Peak> peaks_;    // by step
  Peak* step_peak_ = nullptr;  // of the open phase's step, null between phases
};

// Keeps every event. Only allocations and borders of phases ask for memory: releases happen inside
// destructors, where a failure would end the process, so each allocation makes room for its release.
class Recorder final : public Sink {
 public:
  void begin_phase(PhaseKey key) override;
  void end_phase() override;
  void allocate(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) override;
  void release(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) override;
  void retag(BlockId block, std::int64_t bytes, Tag from, Tag to) override;

  Timeline& timeline() { return timeline_; }

 private:
  void make_room(std::size_t events);

  Timeline timeline_;
  std::size_t alive_ = 0;  // blocks whose release is yet to come
};

// Pushes a recorded timeline into a sink.
void replay(const Timeline& timeline, Sink& sink);

}  // namespace plimsoll::timeline
