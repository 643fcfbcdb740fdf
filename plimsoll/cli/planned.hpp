// The plan that a command's options ask for.
#pragma once

#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/job_options.hpp"
#include "plimsoll/plan/plan.hpp"

namespace plimsoll::cli {

// Loads the model that `given` names, reads its job options and plans both steps. Advised changes carry
// the commands that make them.
Result<plan::Plan> planned(const Given& given, Modes modes = Modes::kTraining);

}  // namespace plimsoll::cli
