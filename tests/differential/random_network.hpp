// Random networks of single operations: fan-in, reuse, ties, views, broadcasting, frozen parameters.
#pragma once

#include <cstdint>

#include "plimsoll/network/network.hpp"

namespace plimsoll::tests {

struct RandomNetworkOptions {
  network::DType dtype = network::DType::kFloat32;
  std::size_t operations = 12;  // before the loss
};

// The same network for the same seed. Ends in a cross entropy; job.dropout must be the caller's.
network::Network random_network(std::uint64_t seed, const RandomNetworkOptions& options);

}  // namespace plimsoll::tests
