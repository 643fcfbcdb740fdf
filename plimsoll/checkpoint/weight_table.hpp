// How transformers calls and lays out the parameters of a model, and how plimsoll does: one table per
// family, read in both directions.
//
//   gpt2     the same names; matrices of its Conv1D are [in, out], plimsoll's are [out, in]
//   llama    the same names and shapes (llama, mistral)
//   minigpt  becomes a GPT-2 whose linear biases are zero: the same function
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/network/spec.hpp"

namespace plimsoll::checkpoint {

struct WeightName {
  std::string ours;
  std::string theirs;
  bool transposed = false;  // theirs is [in, out] where ours is [out, in]
};

// A parameter that transformers has and plimsoll's model does without.
struct ZeroWeight {
  std::string theirs;
  std::vector<std::int64_t> shape;
};

struct WeightTable {
  // All layers; names that a model of these sizes may have, biases included.
  std::vector<WeightName> names;
  std::vector<ZeroWeight> zeros;
  std::string base;  // "transformer.": files of the bare model leave it out

  const WeightName* find(std::string_view ours) const;  // null: there is none
};

// Errors: a family that has no table, naming those that have.
Result<WeightTable> weight_table(const network::NetworkSpec& spec);

// Low-rank matrices beside a model's own (--lora), which its files do not have.
bool is_adapter(std::string_view ours);

// Tensors that stand in files and are no parameters: causal masks, rotary frequencies, the head where
// it is tied. `theirs` without the base.
bool is_no_parameter(const network::NetworkSpec& spec, std::string_view theirs);

}  // namespace plimsoll::checkpoint
