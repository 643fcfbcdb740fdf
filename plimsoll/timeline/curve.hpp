// The memory of a step as a curve: what is alive after every event of the phases that are shown, in
// full or thinned to what a picture can show.
//
// The axis is no time: events are counted, from 0, over the shown phases alone. The beginning of a
// phase counts as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::timeline {

// What is alive after an event.
struct Instant {
  std::int64_t event = 0;
  std::size_t phase = 0;      // index into the shown phases
  OperationId operation = 0;  // 0 at the beginning of a phase
  std::int64_t bytes = 0;     // sum of `alive`
  BytesByTag alive{};
};

// Follows a whole stream and hands on the instants of some of its phases.
class InstantSink : public Sink {
 public:
  // `shown`: in the order in which the stream has them.
  explicit InstantSink(std::vector<PhaseKey> shown) : shown_(std::move(shown)) {}

  void begin_phase(PhaseKey key) final;
  void end_phase() final;
  void allocate(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) final;
  void release(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) final;
  void retag(BlockId block, std::int64_t bytes, Tag from, Tag to) final;

  const std::vector<PhaseKey>& shown() const { return shown_; }

 protected:
  // The beginning of a shown phase, or an event in it.
  virtual void at(const Instant& instant) = 0;
  // Behind the last instant of a shown phase.
  virtual void phase_ends() = 0;

 private:
  void event(OperationId operation);

  const std::vector<PhaseKey> shown_;
  std::size_t next_ = 0;  // of shown_
  std::int64_t events_ = 0;
  bool inside_ = false;
  Instant now_;
};

// A shown phase: its events are first .. last.
struct CurvePhase {
  PhaseKey key;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct Curve {
  std::vector<CurvePhase> phases;
  std::vector<Instant> points;  // in order of time
  std::size_t peak = 0;         // index of the first highest point
  std::int64_t events = 0;      // all of them
};

// Keeps of every `width` events the first highest and the first lowest instant, and the first and the
// last instant of every phase: the figures of phases and the peak are those of the whole stream.
// Width 1 keeps all.
class CurveSink final : public InstantSink {
 public:
  CurveSink(std::vector<PhaseKey> shown, std::int64_t width);

  const Curve& curve() const { return curve_; }

 private:
  void at(const Instant& instant) override;
  void phase_ends() override;
  void keep(const Instant& instant);
  void close_bucket();

  const std::int64_t width_;
  Curve curve_;
  std::int64_t bucket_ = 0;  // instants in the open one
  std::optional<Instant> highest_;
  std::optional<Instant> lowest_;
  Instant last_;
};

}  // namespace plimsoll::timeline
