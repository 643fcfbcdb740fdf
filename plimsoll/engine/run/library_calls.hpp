// One call of libtorch per operation of a network.
#pragma once

#include <vector>

#include "plimsoll/engine/torch.hpp"
#include "plimsoll/network/operation.hpp"

namespace plimsoll::engine {

at::ScalarType scalar_type(network::DType dtype);
std::vector<std::int64_t> sizes(const network::Dims& dims);

// Runs the operation on `values` (by ValueId) and writes its outputs there. Tables that user code
// would build (kArange, kFresh) are made on `device`. libtorch's exceptions pass through.
void call(const network::Operation& op, std::vector<at::Tensor>& values, at::Device device);

}  // namespace plimsoll::engine
