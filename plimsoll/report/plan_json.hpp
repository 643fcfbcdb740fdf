// A plan as JSON, schema plimsoll.plan/1 (docs/schema/plan.json). Both steps are always there. What
// this version cannot know is null, with the reason beside it.
#pragma once

#include "plimsoll/plan/plan.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

Json plan_json(const plan::Plan& plan);

}  // namespace plimsoll::report
