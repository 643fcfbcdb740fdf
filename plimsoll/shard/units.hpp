// Units: the groups of parameters that are gathered, released and reduced together. One unit per
// block, and the root with all the rest (embeddings, final norm, head).
//
// A unit is described by names and sizes alone, so that the planner, the engine and checkpoints
// mean the same thing. Its parameters keep the order in which they were listed; the engine lists a
// module's parameters in named_parameters() order, the planner a network's in Network::parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"

namespace plimsoll::shard {

// An element type as this room sees it: two are the same type when both fields agree. `code` is the
// caller's own number for it (network::DType, at::ScalarType).
struct ElementType {
  std::int32_t code = 0;
  std::int64_t bytes = 4;
  bool operator==(const ElementType&) const = default;
};

struct Parameter {
  std::string name;                 // full, with dots: "blocks.3.attn.qkv.weight"
  std::vector<std::int64_t> shape;  // {} is a scalar; a size of 0 is allowed
  ElementType type;                 // of the values that forward reads
  bool trainable = true;            // false: frozen, no gradient and no optimizer state
  // Parameters with the same identity other than 0 are one tensor under several names (tied).
  std::uint64_t identity = 0;
};
// Product of the shape. OverflowError when it leaves 64 bits.
std::int64_t element_count(const Parameter& parameter);

struct Unit {
  std::string name;                     // the block's name; "root" for the root
  std::vector<std::size_t> parameters;  // positions in the list, ascending, each tensor once
  // Names of the same tensors that are not listed above: {position of the listed one, of the alias}.
  struct Alias {
    std::size_t listed = 0;
    std::size_t alias = 0;
  };
  std::vector<Alias> aliases;
  bool root = false;
};

struct Units {
  std::vector<Unit> units;  // in the order of the blocks given; the root is the last one
  std::size_t root() const { return units.size() - 1; }
  // By position of a parameter: its unit.
  std::vector<std::size_t> unit_of;
};

// Groups parameters by the block whose name is the longest prefix of theirs ("blocks.1" does not take
// "blocks.10.x"); the rest is the root. Blocks may be nested. A block without parameters is a unit
// without elements: nothing of it is ever gathered.
// Errors (exit 2): two parameters of one name; a block named twice or ""; one tensor whose names lie in
// two units, naming both (wrap a module that holds both, or leave both in the root).
Result<Units> group_by_blocks(const std::vector<Parameter>& parameters,
                              const std::vector<std::string>& blocks);

// The same for parameters that know their block: `block_of` is by parameter, -1 means the root,
// others count from 0; `names` are the blocks' names. Same errors.
Result<Units> group_by_index(const std::vector<Parameter>& parameters,
                             const std::vector<std::int32_t>& block_of,
                             const std::vector<std::string>& names);

}  // namespace plimsoll::shard
