// States of optimizers that are not moments of each parameter's size.
//
// torch.optim.Adafactor (PyTorch 2.13, torch/optim/_adafactor.py, checked against a recorded run): of a
// parameter with two or more dimensions a row factor [..., r, 1] and a column factor [..., 1, c], of a
// vector its whole variance, in the gradient's dtype; a 4-byte step tensor each. No first moment.
//
// bitsandbytes AdamW8bit (bitsandbytes/optim/optimizer.py, Optimizer2State): two moments of one byte, and
// of each one fp32 scale per block of 256 elements; parameters below 4,096 elements keep two fp32 moments;
// two tables of 256 fp32 values that all parameters share. Releases before 0.45 had blocks of 2,048.
#pragma once

#include "plimsoll/network/dims.hpp"
#include "plimsoll/network/dtype.hpp"

namespace plimsoll::plan {

// --- Adafactor
struct Factors {
  network::Dims rows;     // of a vector: its own shape
  network::Dims columns;  // none of a vector
};
Factors adafactor_factors(const network::Dims& shape);

// --- AdamW8bit
inline constexpr std::int64_t kBlock8bit = 256;
inline constexpr std::int64_t kSmallest8bit = 4096;  // elements
inline constexpr std::int64_t kTable8bitBytes = 256 * 4;
inline bool has_8bit_states(std::int64_t elements) { return elements >= kSmallest8bit; }
inline std::int64_t blocks_8bit(std::int64_t elements) {
  return (elements + kBlock8bit - 1) / kBlock8bit;
}

}  // namespace plimsoll::plan
