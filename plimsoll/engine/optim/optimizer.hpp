// The optimizers of a run: plimsoll's own and libtorch's.
#pragma once

#include <memory>
#include <vector>

#include "plimsoll/engine/optim/kernels.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::engine {

// One parameter as the optimizer sees it.
struct OptimizedParameter {
  at::Tensor parameter;    // what forward reads; its .grad is the gradient
  at::Tensor master;       // fp32, or undefined: the parameter is its own master
  at::Tensor accumulator;  // gradient over micro-batches, or undefined: .grad
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One step over all parameters that have a gradient.
  virtual void step() = 0;
};

// `parameters` must outlive the optimizer and keep its order; accumulators may change between steps.
// With the implementation plimsoll, states are allocated here. On the meta device the arithmetic of
// fused kernels is skipped and allocations are the same.
std::unique_ptr<Optimizer> make_optimizer(std::vector<OptimizedParameter>& parameters,
                                          const plan::Job& job, const OptimizerSettings& settings);

}  // namespace plimsoll::engine
