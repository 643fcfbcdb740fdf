// How verdicts look: the section of a plan that has a device, and the whole output of `plimsoll fit`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/plan/fit/fit_report.hpp"
#include "plimsoll/report/json.hpp"
#include "plimsoll/report/section.hpp"

namespace plimsoll::report {

Section verdict_section(const plan::Fit& fit, const plan::Job& job);

// What is said of the changes as a whole, behind the word "Changes".
inline constexpr std::string_view kOrderOfChanges =
    " that make it fit, each planned again; cheapest first: same step, more ranks, other "
    "arithmetic, less work, and within these by FLOPs, then traffic";
// "--batch 2 (same step): needs 1.00 GiB, 0.50 GiB less; ...": a change without its command.
std::string change_text(const plan::Change& change);

// The verdict, and the changes when the job does not fit.
std::string fit_section(const plan::Fit& fit, const plan::Job& job, const TextStyle& style);

// Key "fit" of a plan; without a device every figure is null.
Json fit_json(const std::optional<plan::Fit>& fit, const plan::Job& job);

std::string fit_report_text(const plan::FitReport& report, const TextStyle& style);
Json fit_report_json(const plan::FitReport& report);  // schema plimsoll.fit/1

}  // namespace plimsoll::report
