#include "plimsoll/timeline/curve.hpp"

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/error.hpp"

namespace plimsoll::timeline {

// --- InstantSink

void InstantSink::begin_phase(PhaseKey key) {
  inside_ = next_ < shown_.size() && shown_[next_] == key;
  if (!inside_) return;
  now_.phase = next_++;
  event(0);
}

void InstantSink::end_phase() {
  if (inside_) phase_ends();
  inside_ = false;
}

void InstantSink::event(OperationId operation) {
  if (!inside_) return;
  now_.operation = operation;
  now_.event = events_++;
  at(now_);
}

void InstantSink::allocate(BlockId, std::int64_t bytes, Tag tag, OperationId operation) {
  now_.bytes = checked_add(now_.bytes, bytes);
  now_.alive[static_cast<std::size_t>(tag)] += bytes;
  event(operation);
}

void InstantSink::release(BlockId, std::int64_t bytes, Tag tag, OperationId operation) {
  now_.bytes -= bytes;
  now_.alive[static_cast<std::size_t>(tag)] -= bytes;
  event(operation);
}

// No operation of its own: it belongs to the one before.
void InstantSink::retag(BlockId, std::int64_t bytes, Tag from, Tag to) {
  now_.alive[static_cast<std::size_t>(from)] -= bytes;
  now_.alive[static_cast<std::size_t>(to)] += bytes;
  event(now_.operation);
}

// --- CurveSink

CurveSink::CurveSink(std::vector<PhaseKey> shown, std::int64_t width)
    : InstantSink(std::move(shown)), width_(width) {
  check(width >= 1, "a bucket holds at least one event");
}

void CurveSink::keep(const Instant& instant) {
  std::vector<Instant>& points = curve_.points;
  if (!points.empty() && points.back().event >= instant.event) return;
  points.push_back(instant);
  if (instant.bytes > points[curve_.peak].bytes) curve_.peak = points.size() - 1;
}

void CurveSink::close_bucket() {
  if (bucket_ == 0) return;
  const bool high_first = highest_->event < lowest_->event;
  keep(high_first ? *highest_ : *lowest_);
  keep(high_first ? *lowest_ : *highest_);
  highest_.reset();
  lowest_.reset();
  bucket_ = 0;
}

void CurveSink::at(const Instant& instant) {
  curve_.events = instant.event + 1;
  last_ = instant;
  if (curve_.phases.size() == instant.phase) {
    curve_.phases.push_back({shown()[instant.phase], instant.event, instant.event});
    return keep(instant);
  }
  if (!highest_ || instant.bytes > highest_->bytes) highest_ = instant;
  if (!lowest_ || instant.bytes < lowest_->bytes) lowest_ = instant;
  if (++bucket_ == width_) close_bucket();
}

void CurveSink::phase_ends() {
  close_bucket();
  keep(last_);
  curve_.phases.back().last = last_.event;
}

}  // namespace plimsoll::timeline
