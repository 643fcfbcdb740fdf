// The optimizer of a sharded run: each rank updates the elements that it owns.
//
// Element by element the same operations whatever the partition [Note: Partition invariance], so all
// stages and all numbers of ranks that give the same sums give the same bits.
#pragma once

#include <cstdint>

#include "plimsoll/engine/optim/kernels.hpp"
#include "plimsoll/engine/zero/sharder.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::engine::zero {

struct StepReport {
  double gradient_norm = 0;  // before clipping, of the mean gradient; 0 when it was not asked for
  bool updated = true;       // false: skipped, because the norm was not finite
};

struct StepOptions {
  std::int32_t micro_batches = 1;  // k: gradients are divided once, by R k
  double clip = 0;                 // largest norm; 0: no clipping
  bool norm = false;               // wanted without clipping, too
  bool skip_not_finite = false;    // all ranks together leave parameters and states as they are
};

class ShardOptimizer {
 public:
  // `sharder` outlives it and has as many moments as `kind` needs.
  ShardOptimizer(Sharder& sharder, plan::Optimizer kind, const OptimizerSettings& settings);

  // One step over everything that has gradients, then the exchange of what others updated. Collective.
  StepReport step(const StepOptions& options);

  void set_learning_rate(double rate) { settings_.learning_rate = rate; }
  const OptimizerSettings& settings() const { return settings_; }
  // Steps taken so far; set when a run is resumed.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  void update(const OwnedPiece& piece, double gradient_scale) const;

  Sharder& sharder_;
  const plan::Optimizer kind_;
  OptimizerSettings settings_;
  std::int64_t steps_ = 0;
};

}  // namespace plimsoll::engine::zero
