#include "plimsoll/plan/fold/sections.hpp"

namespace plimsoll::plan::fold {
namespace {

using timeline::Event;
using timeline::EventKind;
using timeline::Phase;

constexpr std::int32_t kBefore = 0;
constexpr std::int32_t kBehind = kInner + 1;

// Follows the periods that events belong to, and cuts where the next one begins.
class Cutter {
 public:
  explicit Cutter(const std::vector<Place>& places) : places_(places) { segments_.emplace_back(); }

  // False when the events do not go from period to period.
  bool take(const Event& event) {
    const bool border = event.kind == EventKind::kBeginPhase || event.kind == EventKind::kEndPhase;
    if (border ? !meet_border(event) : !meet(period_of(event))) return false;
    ++next_;
    return true;
  }

  std::optional<std::vector<Segment>> finish() {
    if (inside() && at_ < kInner) return std::nullopt;
    segments_.back().end = next_;
    return std::move(segments_);
  }

 private:
  bool inside() const { return segments_.back().pass != Segment::kOutside; }

  // Forward and backward go by their operations: the schedule works ahead, and releases belong to who makes
  // them. Elsewhere a release belongs to what was made.
  std::int32_t period_of(const Event& event) {
    const Place& now = places_[event.operation];
    const bool allocates = event.kind == EventKind::kAllocate;
    if (allocates) {
      if (made_.size() <= event.block) made_.resize(event.block + event.block / 2 + 1);
      made_[event.block] = now.period;
    }
    const bool runs = open_ && (phase_ == Phase::kForward || phase_ == Phase::kLoss ||
                                phase_ == Phase::kBackward || phase_ == Phase::kReduce);
    if (runs && now.is_unit) return Place::kRoot;
    const bool by_operation = allocates || (runs && now.period != Place::kRoot);
    return by_operation ? now.period : made_[event.block];
  }

  bool meet_border(const Event& event) {
    if (inside() && at_ < kInner) return false;
    leave(kBefore);
    open_ = event.kind == EventKind::kBeginPhase;
    if (open_) phase_ = event.phase.phase;
    down_ = open_ && phase_ == Phase::kBackward;
    return true;
  }

  bool meet(std::int32_t period) {
    if (period == Place::kRoot) return true;
    const std::int32_t position = down_ ? kBehind - period : period;
    return inside() ? go_on(position) : wait_for(position);
  }

  bool go_on(std::int32_t position) {
    if (position > at_ + 1) return false;
    if (position == kBehind) return leave(kBehind);
    if (position == at_ + 1) return begin(pass_, position);
    if (at_ < kInner) return position >= at_ - kReach;
    if (position == 1) return begin(++pass_, 1);
    return position == kBefore ? leave(kBefore) : true;
  }

  bool wait_for(std::int32_t position) {
    if (position == 1) return begin(++pass_, 1);
    if (position == kBefore || position == kBehind) {
      at_ = position;
      return true;
    }
    return at_ == kBehind;
  }

  bool begin(std::int32_t pass, std::int32_t position) {
    at_ = position;
    add({pass, down_ ? kBehind - position : position, down_, next_, next_});
    return true;
  }

  bool leave(std::int32_t at) {
    at_ = at;
    if (inside()) add({Segment::kOutside, 0, false, next_, next_});
    return true;
  }

  void add(const Segment& segment) {
    segments_.back().end = next_;
    segments_.push_back(segment);
  }

  const std::vector<Place>& places_;
  std::vector<Segment> segments_;
  std::vector<std::int32_t> made_;  // by block: the period that allocated it
  std::size_t next_ = 0;            // index of the event
  std::int32_t pass_ = -1;
  std::int32_t at_ = kBefore;  // position in the order of the pass
  Phase phase_ = Phase::kModel;
  bool open_ = false;
  bool down_ = false;
};

}  // namespace

std::optional<std::vector<Segment>> cut(const std::vector<Place>& places,
                                        const timeline::Timeline& brief) {
  Cutter cutter(places);
  for (const Event& event : brief.events) {
    if (!cutter.take(event)) return std::nullopt;
  }
  return cutter.finish();
}

}  // namespace plimsoll::plan::fold
