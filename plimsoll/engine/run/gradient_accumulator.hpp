// Accumulation of 16-bit gradients over micro-batches in a wider dtype.
#pragma once

#include <vector>

#include "plimsoll/engine/optim/optimizer.hpp"

namespace plimsoll::engine {

// From now on, whenever a parameter's gradient is complete in a backward pass, it is added to the
// parameter's accumulator (made at the first micro-batch) and dropped at once. `parameters` must
// outlive every backward pass and may not grow or move.
void accumulate_gradients(std::vector<OptimizedParameter>& parameters, at::ScalarType dtype);

}  // namespace plimsoll::engine
