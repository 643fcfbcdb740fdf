// The sharded part of a calculated run: carries out what the schedule says on the model of autograd.
// One rank's memory; all ranks have the same. Buffers and their instants: shard/memory.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/network/autograd/autograd.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/plan/network_units.hpp"
#include "plimsoll/plan/step_traffic.hpp"
#include "plimsoll/shard/memory.hpp"
#include "plimsoll/shard/schedule.hpp"

namespace plimsoll::plan {

class ShardWalk {
 public:
  // Makes gradients of `network`'s parameters and hooks of `autograd` its own.
  // `first_operation` is the operation id of unit 0's events; each unit has one.
  ShardWalk(network::Autograd& autograd, const network::Network& network, const Job& job,
            timeline::OperationId first_operation);

  // Phase "model" at stages 1 to 3: parameters inside unit storages, shards, masters, moments. Sets
  // the parameters' values.
  void allocate_model(std::vector<network::Tensor>& values);
  // Whether parameters, masters and moments are this class's (stages 1 to 3) or the caller's.
  bool owns_model() const { return job_.stage != shard::Stage::kNothing; }
  // The caller's parameters at stage 0, in the network's order.
  void adopt(const std::vector<network::Tensor>& parameters);

  // --- what happens in a step
  void begin_step();
  void begin_micro_batch(bool last) { schedule_.begin_micro_batch(last); }
  void begin_forward();
  void enter(std::size_t operation);
  void called(std::size_t operation, const std::vector<network::Tensor>& values);
  void end_forward();
  void finish_backward();
  void zero_grad();
  void optimizer_step();

  // Lets go of everything.
  void drop();

  const StepTraffic& traffic() const { return traffic_; }
  // Counts what was exchanged since `before` so many times more.
  void repeat_traffic(const StepTraffic& before, std::int32_t times);

 private:
  // A trainable group's gradients in a step.
  struct Sums {
    bool have = false;  // an earlier micro-batch left sums
    shard::ReduceBuffers buffers;
    network::Tensor input;                // in flight, or kept as gradients
    network::Tensor output;               // in flight, or kept as gradients
    std::array<network::Tensor, 2> kept;  // what stays until zero_grad
  };

  network::Tensor block(std::int64_t bytes, timeline::Tag tag);
  void place_parameters(std::size_t unit, std::vector<network::Tensor>& values);
  void allocate_shards(std::size_t unit);
  void watch();
  void gradient_arrived(network::TensorImpl& leaf);
  void gradient_border(std::int32_t operation);
  void carry_out(shard::Actions actions);
  void carry_out(const shard::Action& action);
  void count(CollectiveCount& kind, std::int64_t bytes) const;
  void reduce(std::size_t unit);
  void finish_reduction(std::size_t unit);

  network::Autograd& a_;
  const network::Network& network_;
  const Job& job_;
  const timeline::OperationId first_operation_;
  const NetworkUnits units_;
  const std::vector<Border> borders_;
  const shard::Arithmetic arithmetic_;
  shard::Schedule schedule_;
  shard::UnitIndex current_ = -1;              // layer whose forward is open
  std::vector<network::Tensor> parameters_;    // in the network's order
  std::vector<network::Tensor> accumulators_;  // local sums over micro-batches
  std::vector<network::Tensor> storages_;      // by unit: holds the unit's storage
  std::vector<network::Tensor> shards_;        // parameters, masters, moments, snapshot
  std::vector<std::vector<Sums>> sums_;        // by unit and group
  std::vector<std::int64_t> trainable_;        // by unit: parameters that get a gradient
  std::vector<std::int64_t> missing_;          // and how many of them have none yet
  std::unordered_map<const network::TensorImpl*, std::size_t> index_;
  StepTraffic traffic_;
};

// Names of the units' operations, in the order of their ids: "unit blocks.3".
std::vector<std::string> unit_operation_names(const network::Network& network);

}  // namespace plimsoll::plan
