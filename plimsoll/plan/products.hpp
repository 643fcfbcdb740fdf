// The arithmetic of products: FLOPs, elements read and written, intensity and how it grows.
//
// A multiplication and an addition are two FLOPs. Elements are counted once each: what a kernel with
// a large enough cache moves. Passes: forward; the two backward products have the FLOPs of forward
// each, one for each operand's gradient.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"

namespace plimsoll::plan {

enum class ProductKind : std::uint8_t {
  kDot,      // [P] . [P]: 2 P
  kMatvec,   // [N, P] [P]: 2 N P
  kMatmul,   // [N, P] [P, M]: 2 N P M
  kBatched,  // G times [M, K] [K, N]: 2 G N M K
};
std::string_view name(ProductKind kind);
// "N P M", what the sizes of a product are called, in the order of the command line.
std::string_view size_names(ProductKind kind);

// One pass of a product.
struct ProductPass {
  std::string pass;     // forward, backward left, backward right
  std::string formula;  // "2 N P M"
  std::int64_t flops = 0;
  std::int64_t elements_read = 0;
  std::int64_t elements_written = 0;
  std::string read_formula;  // "N P + P M"
  std::string written_formula;

  std::int64_t bytes(std::int64_t item) const;
  double intensity(std::int64_t item) const;  // FLOPs per byte, reads and writes
};

// The passes of a product whose sizes are all multiplied by `scale`. `sizes` in the order of
// size_names(). Throws OverflowError beyond int64.
std::vector<ProductPass> product_passes(ProductKind kind, const std::vector<std::int64_t>& sizes,
                                        std::int64_t scale = 1);

// What the intensity of forward does when all sizes grow: "constant", "grows like the size".
std::string_view growth(ProductKind kind);

}  // namespace plimsoll::plan
