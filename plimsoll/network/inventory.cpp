#include "plimsoll/network/inventory.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::network {

std::string_view name(ParameterRole role) {
  constexpr std::array<std::string_view, 12> kNames = {
      "token_embedding", "position_embedding", "other_embeddings", "attention", "mixer", "mlp",
      "experts",         "shared_experts",     "router",           "norms",     "head",  "other"};
  return kNames.at(static_cast<std::size_t>(role));
}

std::int64_t Inventory::elements() const {
  std::int64_t sum = 0;
  for (const InventoryParameter& p : parameters) sum = checked_add(sum, element_count(p.shape));
  return sum;
}

std::int64_t Inventory::ties_counted() const {
  std::int64_t sum = elements();
  for (const auto& names : tied) {
    const InventoryParameter* parameter = find(names.front());
    check(parameter != nullptr, "a tied name without parameter");
    const auto others = static_cast<std::int64_t>(names.size()) - 1;
    sum = checked_add(sum, checked_mul(others, element_count(parameter->shape)));
  }
  return sum;
}

std::int64_t Inventory::active_elements() const {
  std::int64_t sum = 0;
  for (const InventoryParameter& p : parameters) {
    const std::int64_t part = element_count(p.shape) / p.experts;
    sum = checked_add(sum, checked_mul(part, p.used));
  }
  return sum;
}

std::int64_t Inventory::elements_of(ParameterRole role) const {
  std::int64_t sum = 0;
  for (const InventoryParameter& p : parameters) {
    if (p.role == role) sum = checked_add(sum, element_count(p.shape));
  }
  return sum;
}

BufferCount Inventory::count_buffers(bool persistent) const {
  BufferCount count;
  for (const InventoryBuffer& b : buffers) {
    if (b.persistent != persistent) continue;
    ++count.tensors;
    count.elements = checked_add(count.elements, element_count(b.shape));
  }
  return count;
}

const InventoryParameter* Inventory::find(std::string_view name) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const InventoryParameter& p) { return p.name == name; });
  return found == parameters.end() ? nullptr : &*found;
}

void InventoryBuilder::enter(std::string prefix, std::int64_t layer) {
  prefix_ = std::move(prefix);
  layer_ = static_cast<std::int32_t>(layer);
}

void InventoryBuilder::add(std::string_view name, const Dims& shape, ParameterRole role,
                           std::int64_t experts, std::int64_t used) {
  inventory_.parameters.push_back(
      {fmt::format("{}{}", prefix_, name), shape, role, layer_, experts, used});
}

void InventoryBuilder::linear(std::string_view name, std::int64_t out, std::int64_t in, bool bias) {
  add(fmt::format("{}.weight", name), {out, in}, role_, 1, 1);
  if (bias) add(fmt::format("{}.bias", name), {out}, role_, 1, 1);
}

void InventoryBuilder::convolution(std::string_view name, const Dims& shape, bool bias) {
  add(fmt::format("{}.weight", name), shape, role_, 1, 1);
  if (bias) add(fmt::format("{}.bias", name), {shape[0]}, role_, 1, 1);
}

void InventoryBuilder::norm(std::string_view name, std::int64_t width, bool bias) {
  add(fmt::format("{}.weight", name), {width}, ParameterRole::kNorm, 1, 1);
  if (bias) add(fmt::format("{}.bias", name), {width}, ParameterRole::kNorm, 1, 1);
}

void InventoryBuilder::embedding(std::string_view name, std::int64_t rows, std::int64_t width,
                                 ParameterRole role) {
  add(fmt::format("{}.weight", name), {rows, width}, role, 1, 1);
}

void InventoryBuilder::experts(std::string_view name, const Dims& shape, std::int64_t used) {
  add(name, shape, ParameterRole::kExperts, shape[0], used);
}

void InventoryBuilder::tie(std::string_view name, std::string_view other) {
  auto& groups = inventory_.tied;
  const auto group = std::find_if(groups.begin(), groups.end(),
                                  [&](const auto& names) { return names.front() == name; });
  if (group != groups.end()) {
    group->emplace_back(other);
  } else {
    groups.push_back({std::string(name), std::string(other)});
  }
}

void InventoryBuilder::buffer(std::string_view name, const Dims& shape, bool persistent) {
  inventory_.buffers.push_back({fmt::format("{}{}", prefix_, name), shape, persistent});
}

}  // namespace plimsoll::network
