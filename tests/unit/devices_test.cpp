// The device table: complete, plausible, every figure with a source.
#include "plimsoll/formats/devices.hpp"

#include <cmath>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "plimsoll/base/units.hpp"

namespace plimsoll {
namespace {

using formats::DevicePtr;
using formats::devices;
using formats::find_device;
using hardware::Arithmetic;
using hardware::Device;

const Device& device(const std::string& name) {
  const auto found = find_device(name, "--device");
  REQUIRE(found.has_value());
  return **found;
}

TEST_CASE("the cards people train on are known, each name once") {
  std::set<std::string> names;
  for (const DevicePtr& one : devices()) names.insert(one->name);
  CHECK(names.size() == devices().size());
  for (const char* name :
       {"h100-80g", "h200-141g", "a100-40g", "a100-80g", "b200", "v100-16g", "v100-32g", "l4",
        "l40s", "t4", "rtx-3090", "rtx-4090", "rtx-5090", "a10", "a6000", "mi300x", "mi250x"}) {
    CAPTURE(name);
    CHECK(names.contains(name));
  }
  CHECK(devices().size() >= 20);
}

TEST_CASE("every figure has a source, and memory is never unknown") {
  for (const DevicePtr& one : devices()) {
    CAPTURE(one->name);
    for (const auto* figure : {&one->capacity, &one->usable, &one->context}) {
      CHECK(figure->value.has_value());
      CHECK_FALSE(figure->source.empty());
    }
    CHECK(one->bandwidth.value.has_value());
    for (const hardware::Peak& peak : one->peaks) {
      CHECK_FALSE(peak.vector.source.empty());
      CHECK_FALSE(peak.tensor.source.empty());
    }
    CHECK_FALSE(one->links.empty());
    for (const hardware::Link& link : one->links) {
      CHECK(link.bandwidth.value.has_value());
      CHECK_FALSE(link.latency.source.empty());
    }
  }
}

TEST_CASE("figures are plausible: usable below marketed, narrow types faster than wide ones") {
  for (const DevicePtr& one : devices()) {
    CAPTURE(one->name);
    CHECK(*one->usable.value < *one->capacity.value);
    CHECK(*one->usable.value > *one->capacity.value * 9 / 10);
    CHECK(*one->context.value < kGiB);
    const auto peak = [&](Arithmetic a) { return one->peak(a).matmul(); };
    CHECK(*peak(Arithmetic::kFp16) > *peak(Arithmetic::kFp32));
    if (peak(Arithmetic::kBf16)) CHECK(*peak(Arithmetic::kBf16) == *peak(Arithmetic::kFp16));
    if (peak(Arithmetic::kFp8)) CHECK(*peak(Arithmetic::kFp8) > 1.9 * *peak(Arithmetic::kBf16));
    const double bytes_per_flop = *one->bandwidth.value / *peak(Arithmetic::kFp16);
    CHECK(bytes_per_flop > 0.002);
    CHECK(bytes_per_flop < 0.02);
  }
}

TEST_CASE("what is unknown stays unknown: V100 and T4 have no bf16, no A100 has fp8") {
  CHECK_FALSE(device("v100-32g").peak(Arithmetic::kBf16).matmul());
  CHECK_FALSE(device("t4").peak(Arithmetic::kBf16).matmul());
  CHECK_FALSE(device("a100-80g").peak(Arithmetic::kFp8).matmul());
  CHECK(*device("h100-80g").peak(Arithmetic::kBf16).matmul() == doctest::Approx(989.4e12));
  // fp32 products of PyTorch do not use tf32 unless asked to.
  CHECK(*device("a100-80g").peak(Arithmetic::kFp32).matmul() == doctest::Approx(19.5e12));
}

TEST_CASE("names are found in any case; unknown ones get help") {
  CHECK(device("H100-80G").name == "h100-80g");
  const auto prefix = find_device("h100", "--device");
  REQUIRE_FALSE(prefix.has_value());
  CHECK(prefix.error().where == "--device");
  CHECK(prefix.error().hint == "names: h100-80g, h100-pcie-80g");
  CHECK(find_device("rtx4090", "--device").error().hint == "nearest name: rtx-4090");
  CHECK(find_device("", "--device").error().hint == "plimsoll devices lists the names");
}

TEST_CASE("budget: usable minus the device's context, or minus what the user keeps free") {
  const Device& a100 = device("a100-80g");
  const auto own = hardware::memory_budget(a100, std::nullopt);
  CHECK(own.capacity == 80 * kGiB);
  CHECK(own.available() == *a100.usable.value - *a100.context.value);
  CHECK(own.reserve.evidence == Evidence::kMeasured);
  CHECK(hardware::memory_budget(a100, 3 * kGiB).available() == *a100.usable.value - 3 * kGiB);
  CHECK(hardware::memory_budget(a100, 100 * kGiB).available() == 0);
}

TEST_CASE("a device of a size has that capacity, and nothing else is claimed") {
  const Device sized = hardware::device_of_size(24 * kGiB, "24GiB");
  CHECK(hardware::memory_budget(sized, 0).available() == 24 * kGiB);
  CHECK_FALSE(sized.bandwidth.value);
  for (const hardware::Peak& peak : sized.peaks) CHECK_FALSE(peak.matmul());
  CHECK(sized.links.empty());
}

}  // namespace
}  // namespace plimsoll
