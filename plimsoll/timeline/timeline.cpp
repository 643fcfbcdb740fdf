#include "plimsoll/timeline/timeline.hpp"

#include <algorithm>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::timeline {
namespace {

std::int64_t& at(BytesByTag& bytes, Tag tag) { return bytes[static_cast<std::size_t>(tag)]; }

}  // namespace

void PeakSink::begin_phase(PhaseKey key) {
  phases_.push_back({key, current_, current_, current_});
  const auto step = static_cast<std::size_t>(key.step);
  if (peaks_.size() <= step) peaks_.resize(step + 1);
  step_peak_ = &peaks_[step];
  if (current_ > step_peak_->bytes) *step_peak_ = {current_, key, 0, alive_};
}

void PeakSink::end_phase() {
  if (!phases_.empty()) phases_.back().end = current_;
  step_peak_ = nullptr;
}

void PeakSink::allocate(BlockId, std::int64_t bytes, Tag tag, OperationId operation) {
  current_ = checked_add(current_, bytes);
  at(alive_, tag) += bytes;
  if (step_peak_ == nullptr) return;
  PhaseFigures& phase = phases_.back();
  phase.peak = std::max(phase.peak, current_);
  if (current_ > step_peak_->bytes) *step_peak_ = {current_, phase.key, operation, alive_};
}

void PeakSink::release(BlockId, std::int64_t bytes, Tag tag, OperationId) {
  current_ -= bytes;
  at(alive_, tag) -= bytes;
}

void PeakSink::retag(BlockId, std::int64_t bytes, Tag from, Tag to) {
  at(alive_, from) -= bytes;
  at(alive_, to) += bytes;
}

// Twice as much as before, like the vector itself, so that it is rarely called for.
void Recorder::make_room(std::size_t events) {
  std::vector<Event>& all = timeline_.events;
  const std::size_t needed = all.size() + events + alive_;
  if (needed > all.capacity()) all.reserve(std::max(needed, 2 * all.capacity()));
}

void Recorder::begin_phase(PhaseKey key) {
  make_room(1);
  Event event;
  event.kind = EventKind::kBeginPhase;
  event.phase = key;
  timeline_.events.push_back(event);
}

void Recorder::end_phase() {
  make_room(1);
  Event event;
  event.kind = EventKind::kEndPhase;
  timeline_.events.push_back(event);
}

void Recorder::allocate(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) {
  make_room(2);
  ++alive_;
  timeline_.events.push_back({bytes, block, operation, EventKind::kAllocate, tag, tag, {}});
}

void Recorder::release(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) {
  if (alive_ > 0) --alive_;  // a block may be older than the recording
  timeline_.events.push_back({bytes, block, operation, EventKind::kRelease, tag, tag, {}});
}

void Recorder::retag(BlockId block, std::int64_t bytes, Tag from, Tag to) {
  make_room(1);
  timeline_.events.push_back({bytes, block, 0, EventKind::kRetag, from, to, {}});
}

void replay(const Timeline& timeline, Sink& sink) {
  for (const Event& event : timeline.events) {
    switch (event.kind) {
      case EventKind::kAllocate:
        sink.allocate(event.block, event.bytes, event.tag, event.operation);
        break;
      case EventKind::kRelease:
        sink.release(event.block, event.bytes, event.tag, event.operation);
        break;
      case EventKind::kRetag:
        sink.retag(event.block, event.bytes, event.tag, event.to);
        break;
      case EventKind::kBeginPhase:
        sink.begin_phase(event.phase);
        break;
      case EventKind::kEndPhase:
        sink.end_phase();
        break;
    }
  }
}

std::vector<PhaseFigures> phase_figures(const Timeline& timeline) {
  PeakSink sink;
  replay(timeline, sink);
  return sink.phases();
}

Peak find_peak(const Timeline& timeline, std::int32_t step) {
  PeakSink sink;
  replay(timeline, sink);
  if (step >= 0) return sink.peak(step);
  Peak best;
  for (const PhaseFigures& phase : sink.phases()) {
    const Peak& candidate = sink.peak(phase.key.step);
    if (candidate.bytes > best.bytes) best = candidate;
  }
  return best;
}

}  // namespace plimsoll::timeline
