// From an operation of a network to its rule.
#pragma once

#include <vector>

#include "plimsoll/network/autograd/autograd.hpp"
#include "plimsoll/network/operation.hpp"

namespace plimsoll::network::rules {

// Reads the operation's inputs from `values` and writes its outputs there.
void apply(Autograd& a, const Operation& op, std::vector<Tensor>& values);

}  // namespace plimsoll::network::rules
