// The sharded part of a run of plimsoll's own networks: the engine's counterpart of plan::ShardWalk.
//
// The same borders (plan/network_units.hpp), the same schedule, the same instants; so the calculated,
// the dry and the measured run agree event by event.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plimsoll/engine/optim/kernels.hpp"
#include "plimsoll/engine/zero/shard_optimizer.hpp"
#include "plimsoll/engine/zero/sharder.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/plan/network_units.hpp"

namespace plimsoll::engine::zero {

class NetworkShards {
 public:
  // `values`: by ValueId; parameters are made here and written there, on `device`. Arguments outlive it.
  NetworkShards(const network::Network& network, const plan::Job& job,
                const OptimizerSettings& optimizer, at::Device device, std::uint64_t seed,
                comm::Communicator& world, Meter* meter, std::vector<at::Tensor>& values);

  // --- what happens in a step, in the order of plan::ShardWalk
  void begin_micro_batch(bool last) { sharder_->begin_micro_batch(last); }
  void begin_forward(shard::Pass pass = shard::Pass::kTraining);
  void enter(std::size_t operation);
  void called(std::size_t operation, const std::vector<at::Tensor>& values);
  void end_forward();
  void finish_backward() { sharder_->backward_ends(); }
  void zero_grad() { sharder_->zero_grad(); }
  StepReport optimizer_step(const StepOptions& options) { return optimizer_->step(options); }

  Sharder& sharder() { return *sharder_; }
  ShardOptimizer& optimizer() { return *optimizer_; }

 private:
  ShardedModel model_of(at::Device device, std::uint64_t seed, std::vector<at::Tensor>& values);
  void gradient_border(std::size_t operation);

  const network::Network& network_;
  const shard::Stage stage_;
  const plan::NetworkUnits units_;
  const std::vector<plan::Border> borders_;
  shard::Pass pass_ = shard::Pass::kTraining;
  shard::UnitIndex current_ = -1;  // layer whose forward is open
  std::optional<Sharder> sharder_;
  std::optional<ShardOptimizer> optimizer_;
};

// What a job says about sharding.
Settings settings_of(const plan::Job& job);

}  // namespace plimsoll::engine::zero
