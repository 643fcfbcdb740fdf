// Which dtypes go together in a recipe, and which jobs this engine can run.
#pragma once

#include "plimsoll/plan/job.hpp"

namespace plimsoll::plan {

// Overrides that do not exist beside the recipe or the ranks, and what formula recipes do not know.
Result<void> validate_recipe(const Job& job, const network::NetworkSpec& spec);

// What a plan of the recipe or the optimizer rests on, one line each, for those that are not run.
std::vector<std::string> recipe_assumptions(Precision precision);
std::vector<std::string> optimizer_assumptions(Optimizer optimizer);

// Refuses, by name, what is calculated but not run: for commands that run a job. `command` is who asks.
Result<void> validate_runs(const Job& job, const char* command);

}  // namespace plimsoll::plan
