// Sharder: one model's sharded run on one rank. Turns events of the run into the schedule's actions
// and carries them out on the units.
//
// Two kinds of runs feed it: plimsoll's own networks (network_shards.hpp) and a user's module
// (fully_shard.hpp). Both report when units begin and end; that gradients are complete it hears from
// autograd itself. Not thread-safe: one forward or backward pass at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/engine/meter/meter.hpp"
#include "plimsoll/engine/torch.hpp"
#include "plimsoll/engine/zero/unit_shard.hpp"
#include "plimsoll/shard/schedule.hpp"

namespace plimsoll::engine::zero {

// What is no parameter and stays whole on every rank.
struct NamedBuffer {
  std::string name;
  at::Tensor tensor;  // the registered one
};

// A model as the sharder sees it; the same on all ranks.
struct ShardedModel {
  std::vector<shard::Parameter> parameters;  // code = at::ScalarType of what forward reads
  std::vector<at::Tensor> tensors;           // by parameter; registered, of any type and device
  shard::Units units;
  std::optional<std::vector<shard::UnitIndex>> order;  // of the blocks in forward, when known
  std::vector<NamedBuffer> buffers;  // that checkpoints keep; the sharder does nothing with them
};

class Sharder {
 public:
  // Takes the parameters over (UnitShard::take_over), or adopts them at stage 0. `world` outlives it,
  // and so does `meter`, which hears of what happens as "unit NAME".
  Sharder(ShardedModel model, const Settings& settings, comm::Communicator& world,
          const UnitShard::Fill& fill, Meter* meter = nullptr);
  ~Sharder();
  Sharder(const Sharder&) = delete;
  Sharder& operator=(const Sharder&) = delete;

  // --- events, see shard/schedule.hpp
  void begin_micro_batch(bool last);
  void forward_begins(shard::UnitIndex u, shard::Pass pass = shard::Pass::kTraining);
  void forward_ends(shard::UnitIndex u);
  void backward_begins(shard::UnitIndex u);
  void backward_passed(shard::UnitIndex u);
  void backward_ends();
  // After an exception in a pass. Gradients of that pass are dropped.
  void abandon();
  // `function` is called inside every backward pass, at the first event of it that is seen here.
  void when_pass_begins(std::function<void()> function) { pass_begins_ = std::move(function); }

  // --- the step
  void zero_grad();
  // What the optimizer updates of unit u, with its gradients; then updated(u) brings the others'.
  std::vector<OwnedPiece> owned(shard::UnitIndex u) const { return unit(u).owned(accumulators_); }
  void updated(shard::UnitIndex u);
  // Throws std::logic_error when the gradients of this step are not ready for the optimizer: a backward
  // pass that did not end, or micro-batches of which none was the last.
  void expect_reduced() const;
  // Squares of this step's sums, in fp64: over all ranks, in an order that depends on R alone.
  double squared_norm_of_sums();
  // This step's sum of a parameter's gradients over ranks and micro-batches, in its shape; undefined
  // when there is none. Of a tied parameter under any of its names. Collective.
  at::Tensor gathered_sum(std::size_t parameter);
  // Counts from 0; goes into errors of peers.
  void set_step(std::int64_t step) { step_ = step; }

  const Settings& settings() const { return settings_; }
  comm::Communicator& world() const { return world_; }
  const shard::Units& units() const { return model_.units; }
  const std::vector<shard::Parameter>& parameters() const { return model_.parameters; }
  const at::Tensor& tensor(std::size_t parameter) const { return model_.tensors[parameter]; }
  const std::vector<NamedBuffer>& buffers() const { return model_.buffers; }
  const UnitShard& unit(shard::UnitIndex u) const { return *units_[static_cast<std::size_t>(u)]; }
  shard::UnitIndex unit_count() const { return static_cast<shard::UnitIndex>(units_.size()); }
  shard::UnitIndex root() const { return static_cast<shard::UnitIndex>(model_.units.root()); }
  const shard::Schedule& schedule() const { return schedule_; }
  // --- checkpoints: see UnitShard. Between steps.
  std::vector<OwnedPiece> held() const;
  std::vector<OwnedPiece> share() const;
  // After values were written into held(): brings them to everybody who reads them. Collective.
  void adopt_held();
  // Parameters are readable between these two whatever the stage: gathers all units, for tests,
  // evaluation outside of forward, export. Collective calls.
  void gather_everything();
  void release_everything();

 private:
  double squared_norm_of_one_rank() const;
  bool sharded() const { return shard::shards(settings_.stage, world_.size()); }
  void forget_pass();
  bool outside_of_passes(shard::UnitIndex u) const;
  void watch_gradients();
  void enter_pass();
  void gradient_arrived(std::size_t parameter);
  void sum_locally(std::size_t parameter);
  void complete(shard::UnitIndex u);
  void carry_out(shard::Actions actions);
  void carry_out(const shard::Action& action);
  comm::Label label(const UnitShard& unit) const { return {unit.name(), step_}; }

  ShardedModel model_;
  const Settings settings_;
  comm::Communicator& world_;
  Meter* const meter_;
  std::vector<std::unique_ptr<UnitShard>> units_;
  shard::Schedule schedule_;
  std::vector<std::string> operations_;  // by unit, "unit NAME"
  std::vector<std::int64_t> trainable_;  // by unit: parameters with a gradient; 0: nothing to sum
  // Of this backward pass, by unit.
  struct Arrivals {
    std::int64_t missing = 0;  // parameters whose gradient is not there yet
    bool nested = false;       // some came from a backward pass inside this one
    bool complete = false;     // told to the schedule
  };
  std::vector<Arrivals> arrivals_;
  int pass_ = -1;  // running_pass() of this backward pass
  std::function<void()> pass_begins_;
  bool last_micro_batch_ = true;
  bool unreduced_ = false;  // gradients of earlier micro-batches wait for the last one
  std::vector<std::size_t>
      listed_;  // by parameter: the one that stands for all names of its tensor
  std::vector<at::Tensor> accumulators_;
  std::int64_t step_ = 0;
};

}  // namespace plimsoll::engine::zero
