#include "plimsoll/report/measured.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/report/job.hpp"

namespace plimsoll::report {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kHint = "measure and report with the same MODEL and options";

std::string json_of(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

Result<void> check_same(const Json& expected, const Settings& seen, const std::string& where,
                        const std::string& part) {
  for (const auto& [key, value] : expected.items()) {
    if (value.is_structured()) continue;
    const auto same = [&name = key](const auto& setting) { return setting.first == name; };
    const auto found = std::find_if(seen.begin(), seen.end(), same);
    const std::string text = found == seen.end() ? "missing" : found->second;
    if (text == json_of(value)) continue;
    return fail(
        formats::json_where(where, "/" + part + "/" + key),
        fmt::format("a measurement of another job: {}={}, expected {}", key, text, json_of(value)),
        kHint);
  }
  return {};
}

// The highest of the steady step's phases, as the measurement calculated it; 0: it has none.
std::int64_t calculated_peak(const formats::MeasurementFile& measured) {
  std::int64_t peak = 0;
  for (const formats::MeasuredLine& line : measured.lines) {
    const bool counts = line.line.starts_with("steady ") && line.line.ends_with(": peak");
    if (counts) peak = std::max(peak, line.calculated);
  }
  return peak;
}

}  // namespace

Result<Reconciliation> measured_beside(const plan::Plan& plan,
                                       const formats::MeasurementFile& measured,
                                       const std::string& where) {
  const Json model = model_json(plan.spec, plan.parameters);
  const auto same_model = check_same(model, measured.model, where, "model");
  if (!same_model) return tl::unexpected(same_model.error());
  const auto same_job = check_same(job_json(plan.spec, plan.job), measured.job, where, "job");
  if (!same_job) return tl::unexpected(same_job.error());
  const std::int64_t peak = calculated_peak(measured);
  if (peak != plan.steady.peak.bytes) {
    return fail(formats::json_where(where, "/rows"),
                fmt::format("calculated peak of the steady step={}, expected {} as planned", peak,
                            plan.steady.peak.bytes),
                "the file changed, or comes from another version: measure again");
  }
  Reconciliation result;
  for (const formats::MeasuredLine& line : measured.lines) {
    result.rows.push_back(make_row(line.line, line.calculated, line.dry, line.measured, line.cause,
                                   line.bytes ? Unit::kBytes : Unit::kCount));
  }
  result.dry_reason = measured.dry_reason;
  result.measured_reason = measured.measured_reason;
  return result;
}

}  // namespace plimsoll::report
