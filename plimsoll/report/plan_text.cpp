#include "plimsoll/report/plan_text.hpp"

#include <vector>

#include "plimsoll/report/fit.hpp"
#include "plimsoll/report/job.hpp"
#include "plimsoll/report/plan_memory.hpp"

namespace plimsoll::report {

std::string plan_text(const plan::Plan& plan, ShownStep shown, const TextStyle& style) {
  const auto text_of = [&](const Section& section) { return section_text(section, style); };
  const std::vector<std::string> sections = {
      model_line(plan.spec, plan.parameters, style) + job_lines(plan.spec, plan.job, style),
      plan.fit ? fit_section(*plan.fit, plan.job, style) : "",
      text_of(posts_section(plan)),
      text_of(peak_section(plan, shown)),
      text_of(phases_section(plan, shown)),
      text_of(memory_section(plan)),
      text_of(ledger_section(plan)),
      text_of(logits_section(plan)),
      text_of(traffic_section(plan)),
      text_of(advice_section(plan)),
      text_of(flops_section(plan)),
      text_of(semantics_section(plan)),
      text_of(closed_form_section(plan)),
      text_of(evidence_section(plan)),
      text_of(assumptions_section(plan.spec, plan.job))};
  std::string text;
  for (const std::string& section : sections) {
    if (!section.empty()) text += (text.empty() ? "" : "\n") + section;
  }
  return text;
}

}  // namespace plimsoll::report
