// Operations of a network: what a forward function calls, in order, over numbered values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plimsoll/network/dims.hpp"
#include "plimsoll/network/dtype.hpp"
#include "plimsoll/network/library_facts.hpp"

namespace plimsoll::network {

using ValueId = std::uint32_t;
inline constexpr ValueId kNoValue = 0;

// Each kind is one call of the library. Inputs in the order written here; `attributes` in [ ].
enum class OpKind : std::uint8_t {
  kArange,          // -> ids [shape: n, start]
  kFresh,           // -> an uninitialised tensor [shape, dtype]: tables that user code builds
  kHold,            // x -> nothing: user code still holds x here
  kArgument,        // x -> nothing: a checkpoint's saved-tensor hooks see its argument x
  kEmbedding,       // ids, weight
  kAdd,             // x, y
  kMul,             // x, y
  kMulNumber,       // x [number]
  kAddNumber,       // x [number]
  kNeg,             // x
  kPow2,            // x
  kMean,            // x: over the last dimension, kept
  kRsqrt,           // x
  kTo,              // x [dtype]
  kView,            // x [shape]
  kReshape,         // x [shape]
  kTranspose,       // x [dim, dim2]
  kContiguous,      // x
  kUnsqueeze,       // x [dim]
  kExpand,          // x [shape]
  kSlice,           // x [dim, start, stop]
  kSplit,           // x [dim, start: size of a part] -> parts
  kCat,             // parts [dim]
  kLinear,          // x, weight(, bias)
  kKeptLinear,      // as kLinear, inside a region: the result is kept and not recomputed
  kLayerNorm,       // x(, weight(, bias)) [number: eps]
  kRmsNorm,         // x, weight [number: eps]
  kGelu,            // x: exact
  kGeluTanh,        // x: tanh approximation
  kSilu,            // x
  kRelu,            // x
  kReluInPlace,     // x
  kTanh,            // x
  kSoftmax,         // x: over the last dimension
  kClamp,           // x [number: the bound on both sides]
  kDropout,         // x [number: p]
  kAttention,       // q, k, v(, mask) [kernel, number: p, grouped, causal, scale, window]
  kMatmul,          // x, y [causal, window]: a product [B, N, T, .] of self-attention
  kCrossEntropy,    // x, target: mean over rows
  kConv2d,          // x, weight(, bias): 3x3, stride 1, padding 1
  kBatchNorm,       // x, weight, bias, running mean, running variance [number: eps]
  kMaxPool2,        // x: 2x2, stride 2
  kFlatten,         // x: all but the first dimension
  kSelect,          // x [dim, start: index]: the dimension disappears
  kEverySecond,     // x [start: first]: of the last dimension
  kStack,           // x, y: in a new last dimension
  kPickOne,         // x [dim, start: index]: by a list of one index, a copy
  kSub,             // x, y
  kAddInPlace,      // x, y: x += y
  kScale,           // x [number]: x * number, which the graph keeps as Python's does
  kDivide,          // x [number]: x / number, likewise
  kScaleInPlace,    // x [number]
  kDivideInPlace,   // x [number]
  kPow3,            // x
  kColumnLinear,    // x [rows, in], weight [in, out], bias: one addmm
  kBatchedProduct,  // x, y: three dimensions
  kBiasedProduct,   // bias, x, y [causal]: bias + x y, three dimensions, scaled by a number
  kBloomGelu,       // x: bloom's own function of autograd
  kCacheRows,       // cache, x [B, K, ., H] -> nothing: the last rows of x become the cache's last
  kCount,
};
std::string_view name(OpKind kind);

struct Attributes {
  Dims shape;
  std::uint8_t dim = 0;
  std::uint8_t dim2 = 0;
  std::int64_t start = 0;
  std::int64_t stop = 0;
  double number = 0;
  DType dtype = DType::kFloat32;
  AttentionKernel kernel = AttentionKernel::kFlash;
  // Of attention: AttentionOptions says what they mean.
  bool grouped = false;
  bool causal = true;
  double scale = 0;
  std::int64_t window = 0;
};

struct Operation {
  OpKind kind = OpKind::kAdd;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  std::uint32_t label = 0;   // index into Network::labels
  std::int32_t region = -1;  // checkpoint region, or -1
  std::int32_t layer = -1;   // layer index, or -1
};

}  // namespace plimsoll::network
