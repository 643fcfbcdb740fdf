// The picture of a step: memory over its events, stacked by tag, with phases and the peak marked. It is
// complete without a script; page.js adds a cursor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/json.hpp"
#include "plimsoll/report/step_record.hpp"

namespace plimsoll::report {

// A figure element. `available`: bytes that the device has, drawn as a line where the scale allows.
std::string chart_html(const StepRecord& record, std::optional<std::int64_t> available);

// What the cursor reads: columns over the curve's points, bytes as text (scripts have no 64-bit
// numbers), names of phases and operations.
Json curve_json(const StepRecord& record);

// The tags that the curve has, from the bottom of the stack to its top.
std::vector<timeline::Tag> stacked_tags(const timeline::Curve& curve);

// Round values in a binary unit, from above 0 to at most `top`: about four of them.
std::vector<std::int64_t> axis_ticks(std::int64_t top);

}  // namespace plimsoll::report
