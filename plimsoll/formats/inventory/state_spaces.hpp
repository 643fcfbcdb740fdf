// Selective state spaces: the mixers of Mamba and Mamba 2, alone and inside hybrids.
#pragma once

#include <cstdint>
#include <string_view>

#include "plimsoll/network/inventory.hpp"

namespace plimsoll::formats {

struct MambaSizes {
  std::int64_t width = 1;
  std::int64_t inner = 1;
  std::int64_t state = 1;
  std::int64_t rank = 1;  // of the step size's projection
  std::int64_t kernel = 1;
  bool convolution_bias = true;
  bool bias = false;
};

struct Mamba2Sizes {
  std::int64_t width = 1;
  std::int64_t inner = 1;
  std::int64_t heads = 1;
  std::int64_t groups = 1;
  std::int64_t state = 1;
  std::int64_t kernel = 1;
  bool convolution_bias = true;
  bool bias = false;
};

// The parameters of one mixer, under NAME.
void write_mamba(network::InventoryBuilder& g, std::string_view name, const MambaSizes& sizes);
void write_mamba2(network::InventoryBuilder& g, std::string_view name, const Mamba2Sizes& sizes);

}  // namespace plimsoll::formats
