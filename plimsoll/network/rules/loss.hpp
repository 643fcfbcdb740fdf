// Embedding lookup and cross entropy.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

Tensor embedding(Autograd& a, const Tensor& ids, const Tensor& weight);

// Mean over all rows of x [rows, V] against target [rows]: log_softmax and nll_loss.
Tensor cross_entropy(Autograd& a, const Tensor& x, const Tensor& target);

}  // namespace plimsoll::network::rules
