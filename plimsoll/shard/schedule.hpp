// Schedule: when a unit is gathered, prefetched, released and reduced. A state machine without
// tensors, clock or threads: events in, actions out. The planner feeds it the calculated run, the
// engine feeds it autograd's hooks and carries the actions out: one class, so they cannot drift apart.
// Given the same events it gives the same actions on every rank, which keeps collectives in step.
//
// Use: one Schedule per model. Report each event at its instant and carry out what it returns, in
// order, before anything else happens. Not thread-safe: events come from one thread at a time.
//
// [Note: events of one training step] for a root with blocks 0 .. n-1:
//   forward_begins(root) { forward_begins(0) forward_ends(0) ... } forward_ends(root)
//   backward_begins(root) ... backward_begins(n-1) gradients_complete(n-1) backward_passed(n-1) ...
//   gradients_complete(root), backward_ends(); per unit after its shard was updated: updated(u)
// Under activation checkpointing forward_begins / forward_ends come again inside backward; the schedule
// sees that by itself. Missing events are allowed where a module is not used.
//
// [Note: where an engine hears of them] No node is added to the graph, so the calculated run needs none:
//   forward_begins, forward_ends   around the call of the unit's forward (training: gradients enabled)
//   backward_begins                a tensor hook on each result of the unit that needs a gradient
//   gradients_complete             post-accumulate hooks on the unit's trainable parameters, counted
//   backward_passed                a tensor hook on each input of the unit that needs a gradient
//   backward_ends                  a callback queued with the engine, or after backward() returns
//
// [Note: what the actions mean]
//   kGather        stage 3: allocate the unit's storage, start the gather [Note: gather in place]
//   kWait          stage 3: wait for that gather; the parameters may be read from here on
//   kRelease       stage 3: free the unit's storage. Always after its kWait
//   kReduce        gradients of the unit's trainable groups are complete (parameters without one count
//                  as zeros). Make the reduce buffer, copy the gradients in, drop them, start to sum.
//                  Stage 0 all-reduces, stages 1 to 3 reduce-scatter. See memory.hpp for the buffers
//   kFinishReduce  wait for these sums, divide, add to what earlier micro-batches left, free the buffer
//   kUpdate        stages 1 and 2: gather the unit's updated parameters in place, and wait
//
// [Note: bounds] besides the root, at most max(1 + prefetch, units in use) are gathered or on their
// way, where a unit is in use from its forward or backward begin to its end; blocks in a row make that
// 1 + prefetch. The root adds one: it stays gathered from forward to the end of its backward unless
// reshard_root. At most one reduction is in flight: kFinishReduce of the last one always comes before the next
// kReduce. After backward_ends() (or forward_ends(root) of an evaluation) nothing is gathered.
//
// [Note: prefetch] The order of blocks is given (a network that is known) or recorded in the first
// pass, which then runs without prefetch. A pass that deviates drops what was prefetched in vain, goes
// on without prefetch and records itself as the next order. A unit that is needed is always gathered
// itself, so a wrong guess costs traffic and never a wrong value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plimsoll/shard/stage.hpp"

namespace plimsoll::shard {

using UnitIndex = std::int32_t;  // position in Units::units

enum class ActionKind : std::uint8_t {
  kGather,
  kWait,
  kRelease,
  kReduce,
  kFinishReduce,
  kUpdate,
};

struct Action {
  ActionKind kind = ActionKind::kGather;
  UnitIndex unit = 0;
  bool operator==(const Action&) const = default;
};
using Actions = std::span<const Action>;  // valid until the next event

// What the schedule needs to know of a unit (see UnitLayout).
struct UnitTraits {
  bool root = false;
  bool empty = false;         // no elements: never gathered
  bool has_trainable = true;  // some gradient to reduce
  bool has_frozen = false;    // may still be read when its gradients are complete
};

struct ScheduleOptions {
  Stage stage = Stage::kNothing;
  std::int32_t ranks = 1;
  std::int32_t prefetch = 1;  // units gathered ahead; 0: none
  bool reshard_root = false;  // release the root after forward and gather it again for backward
  bool reduce_each = true;    // reduce every micro-batch; false: only the last one of a step
};

enum class Pass : std::uint8_t {
  kTraining,    // a backward pass may follow
  kEvaluation,  // none will: everything is released as forward ends
};

class Schedule {
 public:
  // `order`: blocks in the order in which forward runs them, when it is known.
  Schedule(std::vector<UnitTraits> units, ScheduleOptions options,
           std::optional<std::vector<UnitIndex>> order = std::nullopt);

  // --- events. Illegal ones (an end without a begin, a unit that does not exist) are InternalError.
  Actions forward_begins(UnitIndex u, Pass pass = Pass::kTraining);
  Actions forward_ends(UnitIndex u);
  // The gradient of the unit's output is there: before any node of the unit runs. Idempotent.
  Actions backward_begins(UnitIndex u);
  // All trainable parameters of the unit have their gradient of this backward pass.
  Actions gradients_complete(UnitIndex u);
  // The gradient of the unit's input is there: no node of the unit runs any more. For units whose
  // input needs no gradient it never comes; backward_ends() stands in.
  Actions backward_passed(UnitIndex u);
  // The backward pass is over: releases what is left, reduces units whose gradients never completed
  // (missing ones count as zeros), finishes the last reduction.
  Actions backward_ends();
  // Before a forward pass: whether it is the last micro-batch of the step. Matters when reduce_each
  // is false; the initial state is "last".
  void begin_micro_batch(bool last) { last_micro_batch_ = last; }
  // The optimizer has updated what this rank owns of the unit.
  Actions updated(UnitIndex u);
  // A pass ended by an exception: waits for what is on its way, releases everything, forgets the pass.
  // Gradients of units that were not reduced are the caller's to drop.
  Actions abandon();

  // --- state, for tests and messages
  enum class Storage : std::uint8_t { kSharded, kGathering, kUnsharded };
  enum class State : std::uint8_t { kIdle, kForward, kPreBackward, kBackward };
  Storage storage(UnitIndex u) const { return at(u).storage; }
  State state(UnitIndex u) const { return at(u).state; }
  bool in_backward() const { return in_backward_; }
  // Units gathered or on their way; most of them at any time by [Note: bounds] for blocks in a row.
  std::int32_t gathered() const { return gathered_blocks_ + (root_gathered_ ? 1 : 0); }
  std::int32_t bound() const;

 private:
  struct UnitState {
    UnitTraits traits;
    Storage storage = Storage::kSharded;
    State state = State::kIdle;
    Pass pass = Pass::kTraining;  // of the last forward
    std::int32_t depth = 0;       // open forward calls
    bool kept_by_rerun = false;   // an open rerun found it gathered and must not release it
    bool prefetched = false;      // gathered ahead and not used yet
    bool reduced = false;         // gradients are complete, in this backward pass
    bool passed = false;          // its input's gradient is there, in this backward pass
  };
  // One direction's order of blocks, as guessed and as it happens.
  struct Track {
    std::vector<UnitIndex> order;
    std::vector<UnitIndex> seen;
    std::size_t position = 0;  // of the next block in `order`
    bool known = false;
    bool followed = true;  // so far this pass went as `order` says
  };

  UnitState& at(UnitIndex u);
  const UnitState& at(UnitIndex u) const;
  bool gathers() const { return options_.stage == Stage::kParameters; }
  bool reduces() const {
    return shards(options_.stage, options_.ranks) && (options_.reduce_each || last_micro_batch_);
  }

  void start() { actions_.clear(); }
  void emit(ActionKind kind, UnitIndex u) { actions_.push_back({kind, u}); }
  void gather(UnitIndex u);
  void need(UnitIndex u);
  void release(UnitIndex u);
  void rerun_begins(UnitIndex u);
  void follow(Track& track, UnitIndex u);
  void prefetch(const Track& track);
  void drop_prefetched(UnitIndex except);
  void end_track(Track& track);
  void enter_backward();
  void reduce(UnitIndex u);
  void finish_reduction();

  std::vector<UnitState> units_;
  ScheduleOptions options_;
  Track forward_;
  Track backward_;
  bool in_backward_ = false;
  bool last_micro_batch_ = true;
  std::int32_t gathered_blocks_ = 0;
  bool root_gathered_ = false;
  UnitIndex reducing_ = -1;  // the unit whose reduction is in flight
  std::vector<Action> actions_;
};

}  // namespace plimsoll::shard
