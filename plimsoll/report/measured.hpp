// A measurement that was made before, beside the plan of the same job.
#pragma once

#include <string>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/measurement_file.hpp"
#include "plimsoll/plan/plan.hpp"
#include "plimsoll/report/reconciliation.hpp"

namespace plimsoll::report {

// The measurement's lines. Refused, naming what differs: one of another model or job, and one whose
// calculated peak is not the plan's. `where`: the file, for messages.
Result<Reconciliation> measured_beside(const plan::Plan& plan,
                                       const formats::MeasurementFile& measured,
                                       const std::string& where);

}  // namespace plimsoll::report
