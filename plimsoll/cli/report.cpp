// plimsoll report MODEL --out F.html: a plan as a page, and as a trace.
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/command_line.hpp"
#include "plimsoll/cli/job_options.hpp"
#include "plimsoll/cli/output_file.hpp"
#include "plimsoll/cli/planned.hpp"
#include "plimsoll/cli/version.hpp"
#include "plimsoll/formats/measurement_file.hpp"
#include "plimsoll/report/measured.hpp"
#include "plimsoll/report/page/page.hpp"
#include "plimsoll/report/step_record.hpp"
#include "plimsoll/report/trace.hpp"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;
using report::ShownStep;

// What was written, and what it says.
struct Written {
  plan::Plan plan;
  ShownStep shown = ShownStep::kSteady;
  std::optional<report::Reconciliation> measured;
  std::string out;
  std::optional<std::string> trace;
};

Result<void> check_paths(const Given& given) {
  const std::string* out = given.find("--out");
  if (out == nullptr) return fail("--out", "is missing, expected a name for the HTML file");
  const std::string* trace = given.find("--trace");
  std::error_code problem;
  const auto place = [&](const std::string& path) { return fs::weakly_canonical(path, problem); };
  if (trace != nullptr && place(*trace) == place(*out)) {
    return fail("--trace", "is the file of --out, expected another one");
  }
  return {};
}

Result<std::optional<report::Reconciliation>> read_measured(const Given& given,
                                                            const plan::Plan& plan) {
  const std::string* path = given.find("--measured");
  if (path == nullptr) return std::nullopt;
  const auto file = formats::read_measurement_file(*path);
  if (!file) return tl::unexpected(file.error());
  auto measured = report::measured_beside(plan, *file, *path);
  if (!measured) return tl::unexpected(measured.error());
  return std::move(*measured);
}

// Files that must stay as they are.
std::vector<std::string> inputs_of(const Given& given) {
  std::vector<std::string> inputs = {given.positional,
                                     (fs::path(given.positional) / "config.json").string()};
  if (const std::string* measured = given.find("--measured")) inputs.push_back(*measured);
  return inputs;
}

// Both files, or none of them.
Result<void> write_files(const Written& w, const Given& given) {
  const report::StepRecord record = report::record_step(w.plan, w.shown);
  const std::string made_by = fmt::format("Made by plimsoll {}: {}", version(), call_line(given));
  const std::vector<std::string> inputs = inputs_of(given);
  std::vector<OutputFile> files;
  const auto write = [&](const char* option, const std::string& path,
                         const std::string& text) -> Result<void> {
    auto file = OutputFile::write(option, path, inputs, text);
    if (!file) return tl::unexpected(file.error());
    files.push_back(std::move(*file));
    return {};
  };
  const std::string page = report::page_html({w.plan, record, w.measured, made_by});
  if (auto ok = write("--out", w.out, page); !ok) return ok;
  if (w.trace) {
    if (auto ok = write("--trace", *w.trace, report::trace_json(w.plan)); !ok) return ok;
  }
  for (OutputFile& file : files) {
    if (auto ok = file.commit(); !ok) return ok;
  }
  return {};
}

bool holds(const Written& w) {
  const bool fits = !w.plan.fit || w.plan.fit->need.fits;
  return fits && (!w.measured || report::unnamed_differences(*w.measured).empty());
}

std::string text_of(const Written& w, const TextStyle& style) {
  const plan::StepTimeline& step = report::step_of(w.plan, w.shown);
  Table files({{"", Align::kLeft}, {"", Align::kWrap}});
  files.row({"page", visible(w.out)});
  if (w.trace) files.row({"trace", visible(*w.trace) + ", for Perfetto or chrome://tracing"});
  std::string text = fmt::format(
      "{}: peak of the {} step {} bytes ({}) {}", visible(w.plan.spec.title), report::name(w.shown),
      grouped(step.peak.bytes), human(Bytes{step.peak.bytes}), report::peak_place(step));
  if (w.plan.fit) {
    text += fmt::format("; {} on {}", plan::name(w.plan.fit->verdict),
                        visible(w.plan.job.device->name));
  }
  return wrapped(text, 0, 2, style.width) + "\n" + files.text(style);
}

report::Json json_of(const Written& w) {
  const plan::StepTimeline& step = report::step_of(w.plan, w.shown);
  report::Json json;
  json["schema"] = "plimsoll.report/1";
  json["model"] = w.plan.spec.title;
  json["step"] = report::name(w.shown);
  json["peak"] = {{"bytes", step.peak.bytes},
                  {"phase", timeline::name(step.peak.phase.phase)},
                  {"operation", step.peak_operation}};
  json["verdict"] = w.plan.fit ? report::Json(plan::name(w.plan.fit->verdict)) : report::Json();
  json["unnamed_differences"] =
      w.measured ? report::Json(report::unnamed_differences(*w.measured).size()) : report::Json();
  json["page"] = w.out;
  json["trace"] = w.trace ? report::Json(*w.trace) : report::Json();
  return json;
}

Result<Output> run_report(const Given& given, const TextStyle& style) {
  if (auto ok = check_paths(given); !ok) return tl::unexpected(ok.error());
  auto plan = planned(given);
  if (!plan) return tl::unexpected(plan.error());
  auto measured = read_measured(given, *plan);
  if (!measured) return tl::unexpected(measured.error());
  Written w;
  w.plan = std::move(*plan);
  w.shown = given.has("--first-step") ? ShownStep::kFirst : ShownStep::kSteady;
  w.measured = std::move(*measured);
  w.out = *given.find("--out");
  if (const std::string* trace = given.find("--trace")) w.trace = *trace;
  if (auto ok = write_files(w, given); !ok) return tl::unexpected(ok.error());
  const ExitCode code = holds(w) ? ExitCode::kOk : ExitCode::kCheckFailed;
  return Output{given.has("--json") ? report::json_text(json_of(w)) : text_of(w, style), code};
}

}  // namespace

Command report_command() {
  Syntax syntax{
      "report", "a plan as one HTML file, with its curve of memory; a trace", "MODEL", {}};
  const std::string files = "Files";
  syntax.options = {
      {"--out", "F.html", "the page, whole in one file", files},
      {"--trace", "F.json", "the run's events, for Perfetto or chrome://tracing", files},
      {"--measured", "F.json", "of `plimsoll measure MODEL ... --json`, the same job", files}};
  for (Option& option : job_options()) syntax.options.push_back(std::move(option));
  syntax.options.push_back({"--first-step", "", "show the first step instead of the steady one"});
  syntax.options.push_back({"--json", "", "JSON of schema plimsoll.report/1"});
  return {std::move(syntax), run_report};
}

}  // namespace plimsoll::cli
