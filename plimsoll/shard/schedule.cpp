#include "plimsoll/shard/schedule.hpp"

#include <algorithm>
#include <utility>

#include "plimsoll/base/error.hpp"

namespace plimsoll::shard {

Schedule::Schedule(std::vector<UnitTraits> units, ScheduleOptions options,
                   std::optional<std::vector<UnitIndex>> order)
    : options_(options) {
  check(options.ranks >= 1, "a schedule for fewer than 1 rank");
  check(options.prefetch >= 0, "a prefetch of fewer than 0 units");
  units_.reserve(units.size());
  for (const UnitTraits& traits : units) units_.emplace_back().traits = traits;
  if (!order) return;
  forward_.known = backward_.known = true;
  forward_.order = *order;
  backward_.order.assign(order->rbegin(), order->rend());
}

Schedule::UnitState& Schedule::at(UnitIndex u) {
  check(u >= 0 && static_cast<std::size_t>(u) < units_.size(), "a unit that does not exist");
  return units_[static_cast<std::size_t>(u)];
}
const Schedule::UnitState& Schedule::at(UnitIndex u) const {
  check(u >= 0 && static_cast<std::size_t>(u) < units_.size(), "a unit that does not exist");
  return units_[static_cast<std::size_t>(u)];
}

// --- forward ------------------------------------------------------------------------------------

Actions Schedule::forward_begins(UnitIndex u, Pass pass) {
  start();
  UnitState& unit = at(u);
  if (in_backward_) {
    rerun_begins(u);
    return actions_;
  }
  unit.state = State::kForward;
  unit.pass = pass;
  if (++unit.depth > 1 || !gathers()) return actions_;
  if (!unit.traits.root) follow(forward_, u);
  need(u);
  prefetch(forward_);
  return actions_;
}

Actions Schedule::forward_ends(UnitIndex u) {
  start();
  UnitState& unit = at(u);
  check(unit.depth > 0, "the end of a forward call that did not begin");
  if (--unit.depth > 0) return actions_;
  if (in_backward_) {
    if (!std::exchange(unit.kept_by_rerun, false)) release(u);
    return actions_;
  }
  unit.state = State::kIdle;
  if (!gathers()) return actions_;
  if (unit.traits.root) {
    end_track(forward_);
    if (options_.reshard_root || unit.pass == Pass::kEvaluation) release(u);
    return actions_;
  }
  release(u);
  prefetch(forward_);
  return actions_;
}

// A unit that backward has gathered already stays as it is; another is gathered for the rerun alone.
void Schedule::rerun_begins(UnitIndex u) {
  UnitState& unit = at(u);
  if (++unit.depth > 1) return;
  unit.kept_by_rerun = unit.storage != Storage::kSharded;
  if (gathers()) need(u);
}

// --- backward -----------------------------------------------------------------------------------

void Schedule::enter_backward() {
  if (std::exchange(in_backward_, true)) return;
  for (UnitState& unit : units_) {
    check(unit.depth == 0, "a backward pass inside a forward call");
    unit.reduced = unit.passed = false;
  }
}

Actions Schedule::backward_begins(UnitIndex u) {
  start();
  enter_backward();
  UnitState& unit = at(u);
  const State before = std::exchange(unit.state, State::kPreBackward);
  if (before == State::kPreBackward || !gathers()) return actions_;
  if (!unit.traits.root && before == State::kIdle) follow(backward_, u);
  need(u);
  prefetch(backward_);
  return actions_;
}

Actions Schedule::gradients_complete(UnitIndex u) {
  start();
  enter_backward();
  UnitState& unit = at(u);
  check(unit.traits.has_trainable, "gradients of a unit that has nothing to train");
  check(!unit.reduced, "gradients of a unit complete twice in one backward pass");
  unit.state = State::kBackward;
  // Frozen parameters may still be read: there is no gradient to tell their last use.
  if (!unit.traits.has_frozen || unit.passed) release(u);
  reduce(u);
  prefetch(backward_);
  return actions_;
}

// Without a frozen parameter the gradients say when the unit is done, and more safely: what a unit
// computes from its parameters alone may run after its input's gradient is there.
Actions Schedule::backward_passed(UnitIndex u) {
  start();
  enter_backward();
  UnitState& unit = at(u);
  unit.passed = true;
  if (unit.traits.has_trainable && !unit.reduced) return actions_;
  unit.state = State::kBackward;
  release(u);
  prefetch(backward_);
  return actions_;
}

Actions Schedule::backward_ends() {
  start();
  enter_backward();
  end_track(backward_);
  for (UnitIndex u = 0; u < static_cast<UnitIndex>(units_.size()); ++u) release(u);
  for (UnitIndex u = 0; u < static_cast<UnitIndex>(units_.size()); ++u) {
    UnitState& unit = at(u);
    check(unit.depth == 0, "a backward pass that ends inside a rerun");
    if (unit.traits.has_trainable && !unit.reduced) reduce(u);
    unit.state = State::kIdle;
  }
  finish_reduction();
  in_backward_ = false;
  return actions_;
}

// --- the rest of a step -------------------------------------------------------------------------

Actions Schedule::updated(UnitIndex u) {
  start();
  const UnitState& unit = at(u);
  const bool kept_full = options_.stage == Stage::kOptimizer || options_.stage == Stage::kGradients;
  if (kept_full && unit.traits.has_trainable) emit(ActionKind::kUpdate, u);
  release(u);  // what a forward without backward left gathered is out of date now
  return actions_;
}

Actions Schedule::abandon() {
  start();
  for (UnitIndex u = 0; u < static_cast<UnitIndex>(units_.size()); ++u) {
    release(u);
    UnitState& unit = at(u);
    unit.state = State::kIdle;
    unit.depth = 0;
    unit.kept_by_rerun = false;
  }
  finish_reduction();
  for (Track* track : {&forward_, &backward_}) {
    track->seen.clear();
    track->position = 0;
    track->followed = true;
  }
  in_backward_ = false;
  return actions_;
}

// --- gathering ----------------------------------------------------------------------------------

void Schedule::gather(UnitIndex u) {
  UnitState& unit = at(u);
  unit.storage = Storage::kGathering;
  if (unit.traits.root) {
    root_gathered_ = true;
  } else {
    ++gathered_blocks_;
  }
  emit(ActionKind::kGather, u);
}

// Makes the unit readable. What was gathered ahead gives way when there is no room for both.
void Schedule::need(UnitIndex u) {
  UnitState& unit = at(u);
  if (unit.traits.empty) return;
  if (unit.storage == Storage::kSharded) {
    const auto in_use = std::count_if(units_.begin(), units_.end(), [](const UnitState& other) {
      return !other.traits.root && other.storage != Storage::kSharded && !other.prefetched;
    });
    const bool room = gathered_blocks_ <= std::max<std::int64_t>(options_.prefetch, in_use);
    if (!unit.traits.root && !room) drop_prefetched(u);
    gather(u);
  }
  if (std::exchange(unit.storage, Storage::kUnsharded) == Storage::kGathering) {
    emit(ActionKind::kWait, u);
  }
  unit.prefetched = false;
}

void Schedule::release(UnitIndex u) {
  UnitState& unit = at(u);
  if (unit.storage == Storage::kSharded) return;
  if (unit.storage == Storage::kGathering) emit(ActionKind::kWait, u);
  emit(ActionKind::kRelease, u);
  unit.storage = Storage::kSharded;
  unit.prefetched = false;
  if (unit.traits.root) {
    root_gathered_ = false;
  } else {
    --gathered_blocks_;
  }
}

void Schedule::follow(Track& track, UnitIndex u) {
  track.seen.push_back(u);
  if (!track.known || !track.followed) return;
  if (track.position < track.order.size() && track.order[track.position] == u) {
    ++track.position;
    return;
  }
  track.followed = false;
  drop_prefetched(u);
}

void Schedule::prefetch(const Track& track) {
  if (!gathers() || !track.known || !track.followed) return;
  const auto ahead = static_cast<std::size_t>(options_.prefetch);
  const std::size_t end = std::min(track.order.size(), track.position + ahead);
  for (std::size_t i = track.position; i < end; ++i) {
    UnitState& next = at(track.order[i]);
    if (next.traits.empty || next.storage != Storage::kSharded) continue;
    if (gathered_blocks_ > options_.prefetch) return;
    gather(track.order[i]);
    next.prefetched = true;
  }
}

void Schedule::drop_prefetched(UnitIndex except) {
  for (UnitIndex u = 0; u < static_cast<UnitIndex>(units_.size()); ++u) {
    if (u != except && at(u).prefetched) release(u);
  }
}

void Schedule::end_track(Track& track) {
  drop_prefetched(-1);
  const bool whole = track.followed && track.position == track.order.size();
  if (!track.known || !whole) {
    track.order = track.seen;
    track.known = true;
  }
  track.seen.clear();
  track.position = 0;
  track.followed = true;
}

std::int32_t Schedule::bound() const {
  std::int32_t blocks = 0;
  std::int32_t roots = 0;
  for (const UnitState& unit : units_) {
    if (unit.traits.empty) continue;
    ++(unit.traits.root ? roots : blocks);
  }
  return roots + std::min(blocks, 1 + options_.prefetch);
}

// --- reducing -----------------------------------------------------------------------------------

void Schedule::reduce(UnitIndex u) {
  at(u).reduced = true;
  if (!reduces()) return;
  finish_reduction();
  emit(ActionKind::kReduce, u);
  reducing_ = u;
}

void Schedule::finish_reduction() {
  if (reducing_ >= 0) emit(ActionKind::kFinishReduce, reducing_);
  reducing_ = -1;
}

}  // namespace plimsoll::shard
