// Checks of frozen parts and adapters against a model.
#pragma once

#include "plimsoll/plan/job.hpp"

namespace plimsoll::plan {

// Targets that the layers have not, a rank beyond the width, rules that match no parameter, and jobs
// in which nothing learns.
Result<void> validate_adaptation(const Job& job, const network::NetworkSpec& spec);

}  // namespace plimsoll::plan
