// What a plan compares itself with: the copies of the logits with its peak, and the same job in
// semantics hf with its own figures.
#include <cmath>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/report/plan_figures.hpp"
#include "plimsoll/report/plan_sections.hpp"

namespace plimsoll::report {
namespace {

// "1,024 more, 12.5 %".
std::string difference_text(const SemanticsLine& line) {
  if (line.difference() == 0) return "the same";
  const double percent =
      100.0 * static_cast<double>(std::abs(line.difference())) / static_cast<double>(line.own);
  const char* which = line.difference() > 0 ? "more" : "less";
  return fmt::format("{} {}, {:.1f} %", grouped(std::abs(line.difference())), which, percent);
}

std::string advice_of_chunks(const plan::Plan& plan) {
  const plan::LogitCopies& logits = *plan.logits;
  if (logits.chunks == 1) {
    return "--loss-chunks N computes them for an Nth of the rows at a time";
  }
  const std::int64_t saved = logits.peak_whole - plan.steady.peak.bytes;
  return fmt::format("{} chunks: a peak {} {} than with all logits at once ({})", logits.chunks,
                     human(Bytes{std::abs(saved)}), saved < 0 ? "higher" : "lower",
                     human(Bytes{logits.peak_whole}));
}

}  // namespace

Section semantics_section(const plan::Plan& plan) {
  if (plan.job.semantics == network::Semantics::kHuggingFace) return {};
  const std::string facts = " as transformers writes it (--semantics hf): ";
  if (!plan.hugging_face.figures) {
    return {"The same job", facts + "unknown", plan.hugging_face.reason};
  }
  Table table({{"", Align::kLeft}, {""}, {""}, {""}, {"", Align::kWrap}});
  for (const SemanticsLine& line : semantics_lines(plan)) {
    const bool flops = line.name == "flops";
    table.row({flops ? "FLOPs" : std::string(line.name), grouped(line.other),
               flops ? human(Flops{line.other}) : human(Bytes{line.other}), difference_text(line),
               std::string(line.meaning)});
  }
  return {"The same job", facts + "against this plan", "", std::move(table)};
}

Section logits_section(const plan::Plan& plan) {
  if (!plan.logits) return {};
  const plan::LogitCopies& logits = *plan.logits;
  constexpr std::int64_t kLargePart = 4;  // of the peak: a fourth
  if (logits.chunks == 1 && logits.most_at_once < plan.steady.peak.bytes / kLargePart) return {};
  Table table({{"", Align::kLeft}, {"", Align::kLeft}, {""}, {""}, {""}});
  for (const plan::LogitCopy& copy : logits.copies) {
    table.row({copy.what, std::string(timeline::name(copy.phase)),
               fmt::format("{} bytes each", copy.item), grouped(copy.bytes),
               human(Bytes{copy.bytes})});
  }
  table.rule();
  table.row(
      {"most at once", "", "", grouped(logits.most_at_once), human(Bytes{logits.most_at_once})});
  const char* chunk = logits.chunks > 1 ? " of a chunk" : "";
  const std::string facts = fmt::format(", copies of {} x {} values{}, in bytes",
                                        grouped(logits.rows), grouped(logits.vocabulary), chunk);
  return {"Logits and loss", facts, "", std::move(table), {}, {advice_of_chunks(plan)}};
}

}  // namespace plimsoll::report
