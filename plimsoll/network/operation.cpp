#include "plimsoll/network/operation.hpp"

#include <array>

namespace plimsoll::network {

std::string_view name(OpKind kind) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(OpKind::kCount)> kNames = {
      "arange",        "fresh",      "hold",          "argument",   "embedding",  "add",
      "mul",           "mul_number", "add_number",    "neg",        "pow2",       "mean",
      "rsqrt",         "to",         "view",          "reshape",    "transpose",  "contiguous",
      "unsqueeze",     "expand",     "slice",         "split",      "cat",        "linear",
      "kept_linear",   "layer_norm", "rms_norm",      "gelu",       "gelu_tanh",  "silu",
      "relu",          "relu_",      "tanh",          "softmax",    "clamp",      "dropout",
      "attention",     "matmul",     "cross_entropy", "conv2d",     "batch_norm", "max_pool2",
      "flatten",       "select",     "every_second",  "stack",      "pick_one",   "sub",
      "add_",          "scale",      "divide",        "scale_",     "divide_",    "pow3",
      "column_linear", "bmm",        "biased_bmm",    "bloom_gelu", "cache_rows"};
  return kNames.at(static_cast<std::size_t>(kind));
}

}  // namespace plimsoll::network
