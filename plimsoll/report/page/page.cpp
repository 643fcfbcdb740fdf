#include "plimsoll/report/page/page.hpp"

#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/report/fit.hpp"
#include "plimsoll/report/job.hpp"
#include "plimsoll/report/page/chart.hpp"
#include "plimsoll/report/page/markup.hpp"
#include "plimsoll/report/plan_figures.hpp"
#include "plimsoll/report/plan_json.hpp"
#include "plimsoll/report/plan_memory.hpp"

namespace plimsoll::report {

std::span<const std::pair<std::string_view, std::string_view>> page_files();  // page.css, page.js

namespace {

std::string_view page_file(std::string_view name) {
  for (const auto& [file, text] : page_files()) {
    if (file == name) return text;
  }
  throw InternalError("a file of the page is not built in");
}

// Paragraphs of lines that a terminal would break and a page does not.
constexpr TextStyle kUnbroken{1'000'000, false};

std::string lines_html(std::string text) {
  std::string html;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    html += "<p>" + escaped(text.substr(0, end)) + "</p>\n";
    text.erase(0, end == std::string::npos ? end : end + 1);
  }
  return html;
}

// Nothing outside the file is ever asked for.
constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
)";

std::string head_html(const plan::Plan& plan) {
  return std::string(kHead) + "<title>" + escaped(plan.spec.title) +
         ": memory of a step</title>\n" + "<style>\n" + std::string(page_file("page.css")) +
         "</style>\n</head>\n";
}

std::string header_html(const plan::Plan& plan) {
  const std::string model = model_line(plan.spec, plan.parameters, kUnbroken);
  const std::size_t title = visible(plan.spec.title).size() + 2;
  return "<header>\n<h1>" + escaped(plan.spec.title) + "</h1>\n" + lines_html(model.substr(title)) +
         lines_html(job_lines(plan.spec, plan.job, kUnbroken)) + "</header>\n";
}

std::string changes_html(const plan::Fit& fit) {
  if (fit.need.fits) return "";
  std::string html = fmt::format("<section id=\"changes\">\n<h2>Changes<span>{}</span></h2>\n",
                                 escaped(kOrderOfChanges));
  if (fit.changes.found.empty()) html += "<p>" + escaped(fit.changes.reason) + "</p>\n";
  html += fit.changes.found.empty() ? "" : "<ol>\n";
  for (const plan::Change& change : fit.changes.found) {
    html += "<li>" + escaped(change_text(change)) + "<br><code>" + escaped(change.command) +
            "</code></li>\n";
  }
  html += fit.changes.found.empty() ? "" : "</ol>\n";
  return html + "</section>\n";
}

std::string verdict_html(const plan::Plan& plan) {
  if (!plan.fit) return "";
  return section_html(verdict_section(*plan.fit, plan.job), "verdict") + changes_html(*plan.fit);
}

std::optional<std::int64_t> available_of(const plan::Plan& plan) {
  if (!plan.fit) return std::nullopt;
  return plan.fit->need.available;
}

std::string sections_html(const Page& page) {
  const plan::Plan& plan = page.plan;
  const ShownStep shown = page.record.shown;
  const std::int64_t peak = step_of(plan, shown).peak.bytes;
  return section_html(posts_section(plan), "posts") +
         section_html(peak_section(plan, shown), "peak") +
         section_html(largest_tensors_section(page.record, peak), "largest") +
         section_html(phases_section(plan, shown), "phases") +
         (page.measured ? section_html(reconciliation_section(*page.measured), "measured") : "") +
         section_html(memory_section(plan), "memory") +
         section_html(ledger_section(plan), "ledger") +
         section_html(traffic_section(plan), "traffic") +
         section_html(advice_section(plan), "advice") + section_html(flops_section(plan), "flops") +
         section_html(logits_section(plan), "logits") +
         section_html(semantics_section(plan), "semantics") +
         section_html(closed_form_section(plan), "closed-form") +
         section_html(assumptions_section(plan.spec, plan.job), "assumptions") +
         section_html(facts_section(plan), "facts");
}

}  // namespace

Section largest_tensors_section(const StepRecord& record, std::int64_t peak) {
  Table table({{"", Align::kLeft}, {""}, {""}, {"", Align::kLeft}, {"", Align::kWrap}});
  std::int64_t sum = 0;
  for (const AliveTensor& tensor : record.largest) {
    sum += tensor.bytes;
    table.row({std::string(timeline::name(tensor.tag)), grouped(tensor.bytes),
               human(Bytes{tensor.bytes}), fmt::format("since {}", timeline::name(tensor.phase)),
               tensor.made_by});
  }
  table.rule();
  table.row({"sum", grouped(sum), human(Bytes{sum}), share_text(sum, peak), ""});
  return {"Largest tensors", " alive at the peak, in bytes", "", std::move(table)};
}

Section facts_section(const plan::Plan& plan) {
  Table table({{"fact", Align::kLeft},
               {"value", Align::kLeft},
               {"evidence", Align::kLeft},
               {"source", Align::kWrap}});
  for (const network::Fact& fact : network::fact_list(plan.job.backend)) {
    table.row({std::string(fact.what), std::string(fact.value),
               std::string(network::name(fact.evidence)), std::string(fact.source)});
  }
  Section section = evidence_section(plan);
  section.items.clear();
  section.table = std::move(table);
  return section;
}

std::string page_html(const Page& page) {
  return head_html(page.plan) + "<body>\n" + header_html(page.plan) + "<main>\n" +
         chart_html(page.record, available_of(page.plan)) + verdict_html(page.plan) +
         sections_html(page) + "</main>\n<footer><p>" + escaped(page.made_by) + "</p></footer>\n" +
         script_json(plan_json(page.plan), "plan") + script_json(curve_json(page.record), "curve") +
         "<script>\n" + std::string(page_file("page.js")) + "</script>\n</body>\n</html>\n";
}

}  // namespace plimsoll::report
