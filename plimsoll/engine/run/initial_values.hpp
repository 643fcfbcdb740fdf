// Starting values of plimsoll's own runs. Each makes exactly one block.
#pragma once

#include <cstdint>

#include "plimsoll/engine/torch.hpp"
#include "plimsoll/network/network.hpp"

namespace plimsoll::engine {

// Normal with standard deviation 0.02, ones or zeros. Depends on the seed and the parameter's name
// alone, so that it does not matter who makes which parameters in which order.
at::Tensor initial_parameter(const network::Parameter& parameter, at::Device device,
                             std::uint64_t seed);
// Writes them into a tensor of the parameter's shape and type.
void fill_parameter(const network::Parameter& parameter, std::uint64_t seed, at::Tensor tensor);
// From the default generator:
at::Tensor initial_buffer(const network::Buffer& buffer, at::Device device);
// Random tokens or classes, random pixels, rotary tables.
at::Tensor initial_input(const network::Input& input, const network::Network& network,
                         at::Device device);

}  // namespace plimsoll::engine
