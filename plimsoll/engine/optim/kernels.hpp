// Optimizer arithmetic on contiguous ranges of elements.
//
// [Note: Partition invariance] Every element is computed by the same sequence of rounded operations
// whether it falls into a vector body or a scalar tail (no contraction to fused multiply-add, exact
// square root and division), so any partition of a parameter gives identical bits. at::_fused_adamw_
// does not have this property. One pass over memory, no transient.
#pragma once

#include <cstdint>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine {

struct OptimizerSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;  // sgd-momentum: the momentum
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

// One parameter's share of a step. Types by dtype: `weights` is the master (fp32, fp64) or the bf16
// parameter itself; `copy` (bf16) is rewritten in the same pass when defined. All tensors are
// contiguous or dense with equal strides, and of equal size.
struct OptimizerRange {
  at::Tensor weights;
  at::Tensor gradient;
  at::Tensor first;   // moment, may be undefined (sgd)
  at::Tensor second;  // moment, adamw only
  at::Tensor copy;    // bf16 copy of the master, may be undefined
};

// `step` counts from 1; gradients are multiplied by `gradient_scale` first (1 / micro-batches).
void adamw_step(const OptimizerRange& range, const OptimizerSettings& settings, std::int64_t step,
                double gradient_scale);
void sgd_step(const OptimizerRange& range, const OptimizerSettings& settings,
              double gradient_scale);
void lion_step(const OptimizerRange& range, const OptimizerSettings& settings,
               double gradient_scale);

// sum += gradient for an fp32 (or fp64) sum and a gradient of any floating dtype, without a cast
// temporary. Both dense with equal strides; does nothing on the meta device.
void add_gradient(const at::Tensor& sum, const at::Tensor& gradient);

}  // namespace plimsoll::engine
