// The highest bytes of each kind of memory since it was made, in this process.
#pragma once

#include <algorithm>

#include "plimsoll/engine/meter/meter.hpp"

namespace plimsoll::tests {

class TagPeaks final : public timeline::Sink {
 public:
  TagPeaks() : meter_(*this) {}

  std::int64_t of(timeline::Tag tag) const { return highest_[index(tag)]; }
  std::int64_t total() const { return highest_total_; }  // of all tags together

  void begin_phase(timeline::PhaseKey) override {}
  void end_phase() override {}
  void allocate(timeline::BlockId, std::int64_t bytes, timeline::Tag tag,
                timeline::OperationId) override {
    add(tag, bytes);
  }
  void release(timeline::BlockId, std::int64_t bytes, timeline::Tag tag,
               timeline::OperationId) override {
    add(tag, -bytes);
  }
  void retag(timeline::BlockId, std::int64_t bytes, timeline::Tag from, timeline::Tag to) override {
    add(from, -bytes);
    add(to, bytes);
  }

 private:
  static std::size_t index(timeline::Tag tag) { return static_cast<std::size_t>(tag); }
  void add(timeline::Tag tag, std::int64_t bytes) {
    std::int64_t& now = now_[index(tag)];
    now += bytes;
    highest_[index(tag)] = std::max(highest_[index(tag)], now);
    total_ += bytes;
    highest_total_ = std::max(highest_total_, total_);
  }

  timeline::BytesByTag now_{}, highest_{};
  std::int64_t total_ = 0;
  std::int64_t highest_total_ = 0;
  engine::Meter meter_;  // last: it begins to report when the rest is there
};

}  // namespace plimsoll::tests
