// plimsoll fit MODEL --device D: how far one can go on a device, and what to change.
#include "plimsoll/report/fit.hpp"

#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/command_line.hpp"
#include "plimsoll/cli/job_options.hpp"
#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/plan/fit/fit_report.hpp"

namespace plimsoll::cli {
namespace {

Result<Output> run_fit(const Given& given, const TextStyle& style) {
  const auto spec = formats::load_model(given.positional);
  if (!spec) return tl::unexpected(spec.error());
  const auto job = make_job(given, *spec);
  if (!job) return tl::unexpected(job.error());
  auto report = plan::make_fit_report(*spec, *job);
  if (!report) return tl::unexpected(report.error());
  write_commands(report->fit.changes, given);
  const ExitCode code = report->fit.need.fits ? ExitCode::kOk : ExitCode::kCheckFailed;
  if (given.has("--json")) return Output{report::json_text(report::fit_report_json(*report)), code};
  return Output{report::fit_report_text(*report, style), code};
}

}  // namespace

Command fit_command() {
  Syntax syntax{"fit", "how far a model can go on a device, and what to change so that it fits",
                "MODEL", job_options()};
  syntax.options.push_back({"--json", "", "JSON of schema plimsoll.fit/1"});
  return {std::move(syntax), run_fit};
}

}  // namespace plimsoll::cli
