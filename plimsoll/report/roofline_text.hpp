// Rooflines in reports: the least time, what bounds it, and the device's ridge.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/hardware/device.hpp"
#include "plimsoll/plan/cost.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

// "compute" or "memory".
std::string bound_by(const plan::RooflinePoint& point);

// Keys `seconds` and `bound_by`, null without a device's figures.
void add_point(Json& row, const std::optional<plan::RooflinePoint>& point);

// "h100-80g: 989.40 TFLOP/s bf16, 3.35 TB/s, ridge 295.2 FLOP/B", or why there are no times; "" when
// there is no device.
std::string device_roof(const hardware::Device* device, hardware::Arithmetic arithmetic,
                        const TextStyle& style);

}  // namespace plimsoll::report
