#include "plimsoll/plan/network_units.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll::plan {
namespace {

using network::Network;
using network::Operation;
using network::ValueId;
using shard::UnitIndex;

constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

// Names of the layers, as the labels of their operations say.
std::vector<std::string> layer_names(const Network& network) {
  std::int32_t layers = 0;
  for (const network::Parameter& p : network.parameters) layers = std::max(layers, p.unit + 1);
  for (std::int32_t unit : network.label_units) layers = std::max(layers, unit + 1);
  std::vector<std::string> names(static_cast<std::size_t>(layers));
  for (std::size_t i = 0; i < network.labels.size(); ++i) {
    const std::int32_t unit = network.label_units[i];
    if (unit < 0) continue;
    std::string& name = names[static_cast<std::size_t>(unit)];
    if (name.empty()) name = network.labels[i];
  }
  for (std::size_t u = 0; u < names.size(); ++u) {
    if (names[u].empty()) names[u] = fmt::format("layer {}", u);
  }
  return names;
}

shard::Parameter shard_parameter(const network::Parameter& p) {
  shard::Parameter result;
  result.name = p.name;
  result.shape.assign(p.shape.begin(), p.shape.end());
  result.type = {static_cast<std::int32_t>(p.dtype), network::size_of(p.dtype)};
  result.trainable = p.trainable;
  return result;
}

std::int32_t unit_of(const Network& network, const Operation& op) {
  return network.label_units[op.label];
}

// By value: the operation that makes it, or kNobody.
std::vector<std::size_t> makers(const Network& network) {
  std::vector<std::size_t> result(network.values, kNobody);
  for (std::size_t i = 0; i < network.operations.size(); ++i) {
    for (ValueId v : network.operations[i].outputs) result[v] = i;
  }
  return result;
}

// Tables that user code builds and keeps are read by every layer and need no gradient.
bool is_kept(const Network& network, ValueId v) {
  return std::find(network.kept.begin(), network.kept.end(), v) != network.kept.end();
}

}  // namespace

NetworkUnits units_of(const Network& network, std::int32_t ranks) {
  NetworkUnits result;
  std::vector<std::int32_t> layer;
  for (const network::Parameter& p : network.parameters) {
    result.parameters.push_back(shard_parameter(p));
    layer.push_back(p.unit);
  }
  auto units = shard::group_by_index(result.parameters, layer, layer_names(network));
  check(units.has_value(), "a network's parameters have distinct names and one unit each");
  result.units = std::move(*units);
  result.layouts = shard::lay_out(result.units, result.parameters, ranks);
  return result;
}

std::vector<std::string> unit_names(const Network& network) {
  std::vector<std::string> names = layer_names(network);
  names.emplace_back("root");
  return names;
}

std::vector<shard::UnitTraits> traits_of(const NetworkUnits& units) {
  std::vector<shard::UnitTraits> traits;
  for (std::size_t u = 0; u < units.layouts.size(); ++u) {
    const shard::UnitLayout& layout = units.layouts[u];
    traits.push_back({units.units.units[u].root, layout.elements() == 0, layout.has_trainable(),
                      layout.has_frozen()});
  }
  return traits;
}

std::vector<UnitIndex> order_of(const Network& network) {
  std::vector<UnitIndex> order;
  for (std::size_t i = 0; i < network.loss_begin; ++i) {
    const std::int32_t unit = unit_of(network, network.operations[i]);
    if (unit >= 0 && (order.empty() || order.back() != unit)) order.push_back(unit);
  }
  return order;
}

std::vector<Border> borders_of(const Network& network, UnitIndex root) {
  const std::vector<std::size_t> maker = makers(network);
  std::vector<Border> borders(network.operations.size());
  for (std::size_t i = 0; i < borders.size(); ++i) {
    const std::int32_t unit = unit_of(network, network.operations[i]);
    borders[i].unit = unit < 0 ? root : unit;
  }
  for (std::size_t i = 0; i < borders.size(); ++i) {
    const UnitIndex reader = borders[i].unit;
    for (ValueId v : network.operations[i].inputs) {
      if (maker[v] == kNobody || borders[maker[v]].unit == reader || is_kept(network, v)) continue;
      Border& border = borders[maker[v]];
      if (border.unit != root) border.begins = border.unit;
      if (reader == root || std::count(border.passes.begin(), border.passes.end(), reader) > 0) {
        continue;
      }
      border.passes.push_back(reader);
    }
  }
  if (maker[network.logits] != kNobody) borders[maker[network.logits]].begins = root;
  return borders;
}

}  // namespace plimsoll::plan
