// Plans for tests of reports.
#pragma once

#include <functional>
#include <string>

#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/plan/plan.hpp"

namespace plimsoll::test {

// The plan of a built-in or inline model; `change` sets the job before.
inline plan::Plan some_plan(const std::string& model,
                            const std::function<void(plan::Job&)>& change = {}) {
  const network::NetworkSpec spec = *formats::load_model(model);
  plan::Job job;
  job.sequence = 64;
  if (change) change(job);
  return *plan::make_plan(spec, job);
}

}  // namespace plimsoll::test
