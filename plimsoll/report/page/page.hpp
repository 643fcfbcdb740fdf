// A plan as one HTML file: no network, no framework, light and dark, down to the width of a phone. The
// curve of the step comes first, then the sections of the text, then what the figures rest on.
//
// The element `plan` holds the JSON of `plimsoll plan --json`, and every figure of a table is that of the
// text. Without a script everything but the cursor is there.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/plan/plan.hpp"
#include "plimsoll/report/reconciliation.hpp"
#include "plimsoll/report/step_record.hpp"

namespace plimsoll::report {

struct Page {
  const plan::Plan& plan;
  const StepRecord& record;
  std::optional<Reconciliation> measured;  // of the same job
  std::string made_by;                     // "plimsoll 0.1.0: plimsoll report gpt2 --out gpt2.html"
};

std::string page_html(const Page& page);

// The largest tensors alive at the peak.
Section largest_tensors_section(const StepRecord& record, std::int64_t peak);

// Every fact about the library, with its evidence and source.
Section facts_section(const plan::Plan& plan);

}  // namespace plimsoll::report
