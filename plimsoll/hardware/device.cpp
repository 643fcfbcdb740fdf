#include "plimsoll/hardware/device.hpp"

#include <algorithm>

#include "plimsoll/base/error.hpp"
#include "plimsoll/base/units.hpp"

namespace plimsoll::hardware {

std::string_view name(Arithmetic arithmetic) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Arithmetic::kCount)>
      kNames = {"fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8"};
  return kNames.at(static_cast<std::size_t>(arithmetic));
}

std::string_view name(Platform platform) { return platform == Platform::kCuda ? "cuda" : "rocm"; }

std::optional<double> Peak::matmul() const {
  if (!vector.value || !tensor.value) return tensor.value ? tensor.value : vector.value;
  return std::max(*vector.value, *tensor.value);
}

Device device_of_size(std::int64_t bytes, std::string_view text) {
  const std::string unknown = "only the size was given";
  Device device;
  device.name = text;
  device.title = "a GPU of this capacity and unknown speed";
  device.capacity = {bytes, Evidence::kAssumed, "as given"};
  device.usable = {bytes, Evidence::kAssumed, "as given: all of it"};
  device.context = {600 * kMiB, Evidence::kAssumed, "set as for the cards of the device table"};
  device.bandwidth.source = device.compute_capability.source = unknown;
  for (Peak& peak : device.peaks) peak.vector.source = peak.tensor.source = unknown;
  return device;
}

std::int64_t MemoryBudget::available() const {
  return std::max<std::int64_t>(0, usable - reserve.value.value_or(0));
}

MemoryBudget memory_budget(const Device& device, std::optional<std::int64_t> reserve) {
  check(device.capacity.value && device.usable.value && device.context.value,
        "a device without memory figures");
  MemoryBudget budget{*device.capacity.value, *device.usable.value, device.context};
  if (reserve) budget.reserve = {*reserve, Evidence::kAssumed, "as given"};
  return budget;
}

}  // namespace plimsoll::hardware
