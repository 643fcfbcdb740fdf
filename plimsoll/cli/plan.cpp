// plimsoll plan MODEL: budget and timeline of a training step or of a pass of inference.
#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/job_options.hpp"
#include "plimsoll/cli/planned.hpp"
#include "plimsoll/report/plan_json.hpp"
#include "plimsoll/report/plan_text.hpp"

namespace plimsoll::cli {
namespace {

Result<Output> run_plan(const Given& given, const TextStyle& style) {
  const auto plan = planned(given, Modes::kAll);
  if (!plan) return tl::unexpected(plan.error());
  const bool fits = !plan->fit || plan->fit->need.fits;
  const ExitCode code = fits ? ExitCode::kOk : ExitCode::kCheckFailed;
  if (given.has("--json")) return Output{report::json_text(report::plan_json(*plan)), code};
  const bool first = given.has("--first-step");
  return Output{report::plan_text(
                    *plan, first ? report::ShownStep::kFirst : report::ShownStep::kSteady, style),
                code};
}

}  // namespace

Command plan_command() {
  Syntax syntax{"plan", "budget and timeline of a step or pass, without running it", "MODEL",
                job_options()};
  syntax.options.push_back({"--first-step", "", "show the first step instead of the steady one"});
  syntax.options.push_back({"--json", "", "JSON of schema plimsoll.plan/1, both steps"});
  return {std::move(syntax), run_plan};
}

}  // namespace plimsoll::cli
