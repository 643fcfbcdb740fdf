// What is known of PyTorch's CUDA kernels, for people: each fact with its evidence and its source.
// Files are named as in the repository of PyTorch.
#pragma once

#include <span>

#include "plimsoll/network/library_facts.hpp"

namespace plimsoll::network {

std::span<const Fact> cuda_fact_list();

}  // namespace plimsoll::network
