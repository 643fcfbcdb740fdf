// The units of a network: how plimsoll's own models are sharded, for the planner, the engine and
// checkpoints alike. One unit per layer, and the root.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/network/network.hpp"
#include "plimsoll/shard/layout.hpp"
#include "plimsoll/shard/schedule.hpp"
#include "plimsoll/shard/units.hpp"

namespace plimsoll::plan {

struct NetworkUnits {
  std::vector<shard::Parameter> parameters;  // as Network::parameters; code = network::DType
  shard::Units units;                        // unit u < layers is layer u; the root is the last
  std::vector<shard::UnitLayout> layouts;    // by unit, at the number of ranks asked for
};
NetworkUnits units_of(const network::Network& network, std::int32_t ranks);
// "blocks.0", ..., "root", by unit.
std::vector<std::string> unit_names(const network::Network& network);

std::vector<shard::UnitTraits> traits_of(const NetworkUnits& units);
// Layers in the order in which forward runs them.
std::vector<shard::UnitIndex> order_of(const network::Network& network);

// Where the schedule's events of a network come from [Note: borders]. By operation:
//   unit       which unit it belongs to; a change in forward ends one layer and begins the next
//   begins     the unit whose backward begins when the gradient of this operation's result is there:
//              results of a layer that something behind the layer reads; for the root the logits
//   passes     layers whose backward has passed then: those that read this result
// The engine hangs its hooks on these results; the calculated run watches their nodes.
struct Border {
  shard::UnitIndex unit = 0;
  shard::UnitIndex begins = -1;
  std::vector<shard::UnitIndex> passes;
  bool watched() const { return begins >= 0 || !passes.empty(); }
};
std::vector<Border> borders_of(const network::Network& network, shard::UnitIndex root);

}  // namespace plimsoll::plan
