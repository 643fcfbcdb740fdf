// A plan as text for people: the four posts first, then the peak, phases, saved tensors, FLOPs, the
// closed form with its error, and what was assumed.
#pragma once

#include <string>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/plan/plan.hpp"
#include "plimsoll/report/plan_sections.hpp"

namespace plimsoll::report {

std::string plan_text(const plan::Plan& plan, ShownStep step, const TextStyle& style);

}  // namespace plimsoll::report
