// libtorch's calls for what user code writes besides whole layers: picks, sums in place, numbers.
#pragma once

#include "plimsoll/engine/torch.hpp"
#include "plimsoll/network/operation.hpp"

namespace plimsoll::engine {

// Reads the operation's inputs. Throws InternalError for a kind that it does not know.
at::Tensor call_single_step(const network::Operation& op, const std::vector<at::Tensor>& values);

}  // namespace plimsoll::engine
