// Runner: a network that really runs, on the CPU or (for a dry run) on the meta device.
//
// Executes the same step as the planner walks (network::TrainingStep), with libtorch. Per rank, one
// process; not for use by two threads at once. With a sharded job every rank has a runner, and all of
// them make the same calls.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/engine/meter/meter.hpp"
#include "plimsoll/engine/optim/optimizer.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::engine {

namespace zero {
class NetworkShards;
}

struct RunnerOptions {
  at::Device device = at::kCPU;  // kCPU or kMeta
  std::uint64_t seed = 0;        // of parameters, tokens and dropout
  OptimizerSettings optimizer;
  Meter* meter = nullptr;  // told of phases and operations when set
  // The ranks that a sharded job runs on; its size is job.ranks. Needed when job.sharded().
  comm::Communicator* world = nullptr;
  // A job of one rank and stage 0 runs on the sharder, too: the same bytes, and clipping.
  bool always_shards = false;
};

class Runner {
 public:
  // Allocates parameters, master copies, buffers, inputs and (implementation plimsoll) states, in
  // phase "model". `network` and `job` must outlive the runner.
  Runner(const network::Network& network, const plan::Job& job, const RunnerOptions& options);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Of a job of inference, which has no other calls: one pass; returns its logits [B, V].
  at::Tensor infer();

  // One training step; returns the sum of the micro-batches' losses (0 on meta). Before micro-batch
  // m, `fill(m)` may write new data into the inputs.
  double step(const std::function<void(int micro_batch)>& fill = {});

  // One forward pass without a backward one. A backward pass of the loss must end before the next
  // forward pass and while the runner lives.
  at::Tensor forward_loss();

  // The loss of one forward pass that only evaluates: dropout is off, nothing is kept for backward.
  // `fill` writes the inputs. Between steps; with a sharded job all ranks call it equally often.
  double evaluate(const std::function<void()>& fill);

  // The logits of such a pass. Precondition: job.hold_logits, and not in chunks.
  at::Tensor logits(const std::function<void()>& fill);

  // For runs with shards(): gradients are clipped to this norm, 0: not, and the norm of the mean
  // gradient before clipping is known after each step.
  void set_clip(double most);
  double clipped_norm() const;
  // For runs with shards(): from now on a step whose gradient has no finite norm leaves parameters and
  // states as they are, on all ranks, and keeps its gradients until the next step.
  void skip_not_finite();
  bool updated() const;  // false: the last step was left out
  // The first operation of a forward pass, dropout included, whose result has NaN or +infinity. `fill`
  // writes the inputs. Changes nothing; otherwise as evaluate().
  std::optional<std::size_t> first_not_finite(const std::function<void()>& fill);

  // With job.snapshot: memory for a copy of the state, plan::snapshot_bytes() bytes; else undefined.
  at::Tensor snapshot() const;

  // Tensors by name, to fill or to read. Throws std::out_of_range for unknown names.
  at::Tensor parameter(std::string_view name) const;
  at::Tensor input(network::InputKind kind) const;
  at::Tensor cache(std::string_view name) const;  // of inference: "cache.0.keys" [B, K, S, H]

  const network::Network& network() const;
  // sqrt of the sum of squares of all gradients, summed in double. Not for sharded jobs.
  double gradient_norm() const;

  // The sharded part of the run; null when there is none.
  zero::NetworkShards* shards();

 private:
  class Backend;
  std::unique_ptr<Backend> backend_;
};

}  // namespace plimsoll::engine
