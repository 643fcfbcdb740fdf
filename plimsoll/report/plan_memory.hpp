// The four figures of memory of a plan, with what they rest on, as a section and as JSON.
#pragma once

#include "plimsoll/plan/plan.hpp"
#include "plimsoll/report/json.hpp"
#include "plimsoll/report/section.hpp"

namespace plimsoll::report {

Section memory_section(const plan::Plan& plan);

// requested, allocated, reserved, device_used (null where unknown: then `reason` has the key),
// assumed_bytes, lines, the assumptions of the library's facts; where an allocator is modelled its
// highest instants, and out_of_memory when the card was full.
Json memory_json(const plan::Plan& plan);

}  // namespace plimsoll::report
