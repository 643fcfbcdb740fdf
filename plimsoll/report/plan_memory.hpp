// The four figures of memory of a plan, with what they rest on, as text and as JSON.
#pragma once

#include <string>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/plan/plan.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

std::string memory_section(const plan::Plan& plan, const TextStyle& style);

// requested, allocated, reserved, device_used (null where unknown: then `reason` has the key),
// assumed_bytes, lines, the assumptions of the library's facts; where an allocator is modelled its
// highest instants, and out_of_memory when the card was full.
Json memory_json(const plan::Plan& plan);

}  // namespace plimsoll::report
