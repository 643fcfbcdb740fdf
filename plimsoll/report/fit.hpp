// How verdicts look: the section of a plan that has a device, and the whole output of `plimsoll fit`.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/plan/fit/fit_report.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

// Section "Verdict", and "Changes" when the job does not fit.
std::string fit_section(const plan::Fit& fit, const plan::Job& job, const TextStyle& style);

// Key "fit" of a plan; without a device every figure is null.
Json fit_json(const std::optional<plan::Fit>& fit, const plan::Job& job);

std::string fit_report_text(const plan::FitReport& report, const TextStyle& style);
Json fit_report_json(const plan::FitReport& report);  // schema plimsoll.fit/1

}  // namespace plimsoll::report
