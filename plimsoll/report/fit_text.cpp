#include <cmath>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/report/fit.hpp"
#include "plimsoll/report/job.hpp"

namespace plimsoll::report {
namespace {

using plan::Change;
using plan::Fit;
using plan::FitOption;
using plan::FitReport;

std::string human_text(std::int64_t bytes) { return human(Bytes{bytes}); }

std::string heading(std::string_view title, const std::string& facts, const TextStyle& style) {
  return bold(title, style) + facts + "\n";
}

// "1.00 GiB less", "1.00 GiB more", "none".
std::string more_or_less(std::int64_t bytes) {
  if (bytes == 0) return "unchanged";
  return fmt::format("{} {}", human_text(std::abs(bytes)), bytes < 0 ? "less" : "more");
}

// --- verdict

std::string available_text(const Fit& fit) {
  const auto& reserve = fit.budget.reserve;
  return fmt::format("{} usable minus a reserve of {} ({}: {})", human_text(fit.budget.usable),
                     human_text(reserve.value.value_or(0)), name(reserve.evidence), reserve.source);
}

std::string verdict_facts(const Fit& fit, const plan::Job& job) {
  std::string facts = fmt::format(": {} on {}", name(fit.verdict), visible(job.device->name));
  if (fit.verdict == plan::Verdict::kTight) {
    facts += fmt::format(", with less than {:.0f} % to spare", 100 * plan::kTightShare);
  }
  return facts;
}

// --- changes

// A long command goes on behind a backslash, as shells read it.
std::string command_lines(const std::string& command, const TextStyle& style) {
  constexpr std::size_t kIndent = 5;
  constexpr std::size_t kBackslash = 2;
  const std::string lines = wrapped(command, kIndent, kIndent + 2, style.width - kBackslash);
  std::string text;
  for (const char c : lines) c == '\n' ? text += " \\\n" : text += c;
  return std::string(kIndent, ' ') + text + "\n";
}

std::string change_lines(std::size_t number, const Change& change, const TextStyle& style) {
  return fmt::format("  {}. ", number) + wrapped(change_text(change), 5, 5, style.width) + "\n" +
         command_lines(change.command, style);
}

std::string changes_section(const Fit& fit, const TextStyle& style) {
  if (fit.need.fits) return "";
  constexpr std::size_t kTitle = 7;
  std::string text =
      bold("Changes", style) + wrapped(kOrderOfChanges, kTitle, 2, style.width) + "\n";
  for (std::size_t i = 0; i < fit.changes.found.size(); ++i) {
    text += change_lines(i + 1, fit.changes.found[i], style);
  }
  if (fit.changes.found.empty()) {
    text += "  - " + wrapped(fit.changes.reason, 4, 4, style.width) + "\n";
  }
  return text;
}

// --- how far one can go

std::string or_none(const std::optional<std::int64_t>& value) {
  return value ? grouped(*value) : "none";
}

std::string limits_section(const FitReport& report, const TextStyle& style) {
  const bool image = report.spec.family == network::Family::kCnn;
  Table table({{"", Align::kLeft}, {""}, {"", Align::kWrap}});
  table.row({"largest batch", or_none(report.fit.largest_batch),
             "by the timeline: it fits, one row more does not"});
  if (!image) {
    table.row({"", or_none(report.closed_form.with_A0), "by closed form, approximate"});
    table.row({"", or_none(report.closed_form.without_A0), "by closed form without A0 = e Psi"});
    const bool all = report.longest_sequence == report.spec.positions;
    table.row({"longest sequence", or_none(report.longest_sequence),
               fmt::format("tokens{}, batch {}", all ? ", all positions of the model" : "",
                           report.job.batch)});
  }
  const auto& fewest = report.fewest_ranks;
  table.row({"fewest ranks", or_none(fewest.ranks),
             fewest.ranks == 1 && !report.job.sharded()
                 ? "one rank is enough"
                 : fmt::format("at stage {}, batch {} on each rank", static_cast<int>(fewest.stage),
                               report.job.batch)});
  return heading("Limits", ", all else as in the job", style) + table.text(style);
}

std::string options_section(const FitReport& report, const TextStyle& style) {
  Table table({{"stage"},
               {"checkpoint", Align::kLeft},
               {"needed"},
               {""},
               {"FLOPs"},
               {"traffic"},
               {"largest batch"},
               {"", Align::kLeft}});
  for (std::size_t i = 0; i < report.options.size(); ++i) {
    const FitOption& option = report.options[i];
    const char* verdict = report.best == i ? "fits, cheapest" : option.need.fits ? "fits" : "";
    table.row({fmt::format("{}", static_cast<int>(option.stage)),
               std::string(network::name(option.checkpoint)), grouped(option.need.bytes),
               human_text(option.need.bytes), fmt::format("{:.2f} x", option.flops),
               human_text(option.need.traffic), or_none(option.largest_batch), verdict});
  }
  const std::string facts =
      fmt::format(" at {} rank{}: bytes needed, FLOPs against the job, traffic of a step",
                  report.job.ranks, report.job.ranks == 1 ? "" : "s");
  return heading("Options", facts, style) + table.text(style);
}

}  // namespace

std::string change_text(const Change& change) {
  std::string settings;
  for (const plan::Setting& setting : change.settings) {
    settings += fmt::format("{}{} {}", settings.empty() ? "" : " ", setting.option, setting.value);
  }
  return fmt::format("{} ({}): needs {}, {}; FLOPs {:.2f} x; traffic of a step {}", settings,
                     name(change.cost), human_text(change.need.bytes), more_or_less(-change.saved),
                     change.flops, more_or_less(change.traffic));
}

Section verdict_section(const Fit& fit, const plan::Job& job) {
  Table table({{"", Align::kLeft}, {""}, {""}, {"", Align::kWrap}});
  const auto add = [&](const char* what, std::int64_t bytes, const std::string& meaning) {
    table.row({what, grouped(bytes), human_text(bytes), meaning});
  };
  add("needed", fit.need.bytes, std::string(plan::decided_by(job)));
  add("available", fit.need.available, available_text(fit));
  table.rule();
  add(fit.need.fits ? "free" : "lacking", std::abs(fit.free()), "");
  const std::string batch = fit.largest_batch ? grouped(*fit.largest_batch) : "none";
  table.row({"largest batch", batch, "",
             fit.largest_batch ? "rows of a micro-batch" : "not even one row fits"});
  return {"Verdict", verdict_facts(fit, job), "", std::move(table)};
}

std::string fit_section(const Fit& fit, const plan::Job& job, const TextStyle& style) {
  const std::string changes = changes_section(fit, style);
  return section_text(verdict_section(fit, job), style) + (changes.empty() ? "" : "\n" + changes);
}

std::string fit_report_text(const FitReport& report, const TextStyle& style) {
  return model_line(report.spec, report.parameters, style) +
         job_lines(report.spec, report.job, style) + "\n" +
         fit_section(report.fit, report.job, style) + "\n" + limits_section(report, style) + "\n" +
         options_section(report, style) + "\n" +
         section_text(assumptions_section(report.spec, report.job), style);
}

}  // namespace plimsoll::report
