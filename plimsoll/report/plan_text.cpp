#include "plimsoll/report/plan_text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/report/fit.hpp"
#include "plimsoll/report/job.hpp"
#include "plimsoll/report/plan_figures.hpp"
#include "plimsoll/report/plan_memory.hpp"
#include "plimsoll/timeline/alive_tags.hpp"

namespace plimsoll::report {
namespace {

using plan::Plan;
using plan::StepTimeline;
using timeline::PhaseFigures;

// From here on a table has no room for a second way of writing a number.
constexpr std::int64_t kUnreadable = 100'000'000'000'000'000;

std::string bytes_text(std::int64_t bytes) { return grouped(bytes); }
std::string human_text(std::int64_t bytes) { return human(Bytes{bytes}); }

std::string heading(std::string_view title, std::string_view facts, const TextStyle& style) {
  return bold(title, style) + std::string(facts) + "\n";
}

// --- posts

std::string posts_section(const Plan& plan, const TextStyle& style) {
  const plan::Posts& posts = plan.posts;
  Table table({{"", Align::kLeft}, {"", Align::kLeft}, {""}, {""}, {"", Align::kWrap}});
  const auto add = [&](const char* letter, const char* name, std::int64_t bytes,
                       const char* meaning) {
    table.row({letter, name, bytes_text(bytes), human_text(bytes), meaning});
  };
  const bool masters = plan.job.recipe().master.has_value();
  const bool formula = posts.by_formula;
  add("P", "weights", posts.parameters,
      formula   ? plan.closed_form->parameters.c_str()
      : masters ? "master copies included"
                : "");
  add("G", "gradients", posts.gradients,
      formula ? plan.closed_form->gradients.c_str() : "when the optimizer steps");
  add("O", "optimizer", posts.optimizer(), formula ? plan.closed_form->optimizer.c_str() : "");
  if (posts.loss_scaler > 0) {
    add("", "  moments", posts.moments, "");
    add("", "  loss scaler", posts.loss_scaler, "scale and growth tracker");
  }
  if (posts.step_counters > 0) {
    add("", "  moments", posts.moments, "");
    add("", "  step counters", posts.step_counters,
        posts.counters_on_host ? "one per parameter tensor, in host memory"
                               : "one per parameter tensor");
  }
  add("A", "activations", posts.activations, "what backward needs (distinct, see below)");
  table.rule();
  const std::int64_t sum =
      posts.parameters + posts.gradients + posts.optimizer() + posts.activations;
  add("", "sum", sum, "which is not the peak: see below");
  return heading("Posts", " per rank, in bytes", style) + table.text(style);
}

// --- peak

std::string peak_place(const StepTimeline& step) {
  std::string place = fmt::format("in {}", timeline::name(step.peak.phase.phase));
  if (!step.peak_operation.empty()) place += fmt::format(", at {}", step.peak_operation);
  return place + "; alive then:";
}

std::string peak_section(const StepTimeline& step, const char* which, const TextStyle& style) {
  Table table({{"", Align::kLeft}, {""}, {""}, {""}});
  for (const timeline::AliveTag& alive : timeline::alive_tags(step.peak)) {
    table.row({std::string(timeline::name(alive.tag)), bytes_text(alive.bytes),
               human_text(alive.bytes), share_text(alive.bytes, step.peak.bytes)});
  }
  const std::string facts = fmt::format(" of the {} step: {} bytes ({})", which,
                                        bytes_text(step.peak.bytes), human_text(step.peak.bytes));
  return heading("Peak", facts, style) + "  " + wrapped(peak_place(step), 2, 4, style.width) +
         "\n" + table.text(style);
}

// --- phases

bool same_figures(const PhaseFigures& a, const PhaseFigures& b) {
  return a.key.phase == b.key.phase && a.start == b.start && a.end == b.end && a.peak == b.peak;
}

// Consecutive micro-batches whose forward, loss and backward have the same figures.
struct PhaseRun {
  PhaseFigures figures;
  std::int32_t first = 0;
  std::int32_t last = 0;
};

// Rows in order of time; micro-batches that repeat the one before are folded into its rows.
std::vector<PhaseRun> phase_runs(const std::vector<PhaseFigures>& phases) {
  std::vector<PhaseRun> runs;
  const bool reduces = std::any_of(phases.begin(), phases.end(), [](const PhaseFigures& f) {
    return f.key.phase == timeline::Phase::kReduce;
  });
  const std::size_t per_micro_batch = reduces ? 4 : 3;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::int32_t m = phases[i].key.micro_batch;
    const bool begins = phases[i].key.phase == timeline::Phase::kForward && m > 0 &&
                        i + per_micro_batch <= phases.size() && runs.size() >= per_micro_batch;
    const std::size_t before = runs.size() - (begins ? per_micro_batch : 0);
    bool repeats = begins;
    for (std::size_t j = 0; repeats && j < per_micro_batch; ++j) {
      repeats = same_figures(phases[i + j], runs[before + j].figures);
    }
    if (!repeats) {
      runs.push_back({phases[i], m, m});
      continue;
    }
    for (std::size_t j = 0; j < per_micro_batch; ++j) runs[before + j].last = m;
    i += per_micro_batch - 1;
  }
  return runs;
}

std::string micro_batches(const PhaseRun& run) {
  if (run.first == run.last) return fmt::format("{}", run.first);
  return fmt::format("{} to {}", run.first, run.last);
}

std::string phases_section(const Plan& plan, const StepTimeline& step, const char* which,
                           const TextStyle& style) {
  const bool numbered = plan.job.accumulate > 1;
  Table table({{"", Align::kLeft},
               {numbered ? "micro-batch" : "", Align::kLeft},
               {"start"},
               {"end"},
               {"peak"},
               {""}});
  for (const PhaseRun& run : phase_runs(step.phases)) {
    const PhaseFigures& f = run.figures;
    const bool repeated =
        f.key.phase == timeline::Phase::kForward || f.key.phase == timeline::Phase::kLoss ||
        f.key.phase == timeline::Phase::kBackward || f.key.phase == timeline::Phase::kReduce;
    table.row({std::string(timeline::name(f.key.phase)),
               numbered && repeated ? micro_batches(run) : "", bytes_text(f.start),
               bytes_text(f.end), bytes_text(f.peak),
               step.peak.bytes < kUnreadable ? human_text(f.peak) : ""});
  }
  return heading("Phases", fmt::format(" of the {} step, in bytes", which), style) +
         table.text(style);
}

// --- saved tensors, FLOPs, closed form

std::string ledger_section(const Plan& plan, const TextStyle& style) {
  Table table({{"", Align::kLeft}, {""}, {""}, {""}, {"", Align::kWrap}});
  for (const NamedLine& named : ledger_lines(plan.ledger)) {
    table.row(
        {std::string(named.name), bytes_text(named.line.bytes), human_text(named.line.bytes),
         fmt::format("{} {}", grouped(named.line.count), named.storages ? "storages" : "tensors "),
         std::string(named.meaning)});
  }
  return heading("Saved for backward", " by one micro-batch, in bytes", style) + table.text(style);
}

// The least time of a step, where the job's device is known well enough.
std::string time_line(const Plan& plan) {
  if (!plan.time) return "";
  return fmt::format("  a step takes at least {}, bound by {}: peaks of {}, no communication\n",
                     with_prefix(plan.time->seconds, "s"), plan.time->by(), plan.job.device->name);
}

std::string flops_section(const Plan& plan, const TextStyle& style) {
  const bool image = plan.spec.family == network::Family::kCnn;
  network::FlopCount total;
  for (const PassLine& pass : pass_lines(plan.flops)) total += pass.flops;
  const bool readable = total.total_full() < kUnreadable;
  Table table({{"", Align::kLeft},
               {image ? "" : "attention full"},
               {image ? "" : "causal half"},
               {image ? "" : "causal exact"},
               {""}});
  const auto for_people = [&](std::int64_t flops) {
    return readable ? human(Flops{flops}) : std::string();
  };
  const auto add = [&](std::string_view name, const network::FlopCount& flops) {
    const std::string half = image ? "" : grouped(flops.total_half());
    const std::string exact = image ? "" : grouped(flops.total_exact());
    table.row({std::string(name), grouped(flops.total_full()), half, exact,
               for_people(flops.total_full())});
  };
  for (const PassLine& pass : pass_lines(plan.flops)) {
    if (pass.name != "recompute" || pass.flops.total_full() > 0) add(pass.name, pass.flops);
  }
  table.rule();
  add("total", total);
  if (!image) {
    table.row({"6 N T rule", grouped(plan.rule_6nt), "", "", for_people(plan.rule_6nt)});
  }
  return heading("FLOPs", " of one micro-batch", style) + table.text(style) + time_line(plan);
}

// "1,024 more, 12.5 %".
std::string difference_text(const SemanticsLine& line) {
  if (line.difference() == 0) return "the same";
  const double percent =
      100.0 * static_cast<double>(std::abs(line.difference())) / static_cast<double>(line.own);
  const char* which = line.difference() > 0 ? "more" : "less";
  return fmt::format("{} {}, {:.1f} %", grouped(std::abs(line.difference())), which, percent);
}

std::string semantics_section(const Plan& plan, const TextStyle& style) {
  if (plan.job.semantics == network::Semantics::kHuggingFace) return "";
  const std::string_view facts = " as transformers writes it (--semantics hf): ";
  const std::string_view title = "The same job";
  if (!plan.hugging_face.figures) {
    const std::string why = fmt::format("{}unknown, {}", facts, plan.hugging_face.reason);
    return bold(title, style) + wrapped(why, title.size(), 2, style.width) + "\n";
  }
  Table table({{"", Align::kLeft}, {""}, {""}, {""}, {"", Align::kWrap}});
  for (const SemanticsLine& line : semantics_lines(plan)) {
    const bool flops = line.name == "flops";
    table.row({flops ? "FLOPs" : std::string(line.name), grouped(line.other),
               flops ? human(Flops{line.other}) : human_text(line.other), difference_text(line),
               std::string(line.meaning)});
  }
  return heading(title, fmt::format("{}against this plan", facts), style) + table.text(style);
}

std::string error_text(double error) {
  return fmt::format("{:.1f} % {}", std::abs(100 * error), error < 0 ? "below" : "above");
}

std::string closed_form_section(const Plan& plan, const TextStyle& style) {
  if (!plan.closed_form) return "";
  const plan::ClosedForm& form = *plan.closed_form;
  Table table({{"", Align::kLeft}, {""}, {""}, {"", Align::kWrap}});
  const auto add = [&](const char* name, double bytes, const std::string& meaning) {
    const std::int64_t whole = whole_bytes(bytes);
    table.row({name, bytes_text(whole), human_text(whole), meaning});
  };
  add("P", form.posts.parameters, form.parameters);
  add("G", form.posts.gradients, form.gradients);
  add("O", form.posts.optimizer, form.optimizer);
  add("A", form.posts.activations, form.activations);
  table.rule();
  add("sum", form.posts.total(),
      fmt::format("e = {} bytes", network::size_of(plan.job.recipe().compute)));
  const std::string facts = fmt::format(", approximate, in bytes: its A is {} {}",
                                        error_text(form.error), form.compared_with);
  return heading("Closed form", facts, style) + table.text(style);
}

// Where they are a large part of the peak, or come in chunks.
std::string logits_section(const Plan& plan, const TextStyle& style) {
  if (!plan.logits) return "";
  const plan::LogitCopies& logits = *plan.logits;
  constexpr std::int64_t kLargePart = 4;  // of the peak: a fourth
  if (logits.chunks == 1 && logits.most_at_once < plan.steady.peak.bytes / kLargePart) return "";
  Table table({{"", Align::kLeft}, {"", Align::kLeft}, {""}, {""}, {""}});
  for (const plan::LogitCopy& copy : logits.copies) {
    table.row({copy.what, std::string(timeline::name(copy.phase)),
               fmt::format("{} bytes each", copy.item), bytes_text(copy.bytes),
               human_text(copy.bytes)});
  }
  table.rule();
  table.row(
      {"most at once", "", "", bytes_text(logits.most_at_once), human_text(logits.most_at_once)});
  const char* chunk = logits.chunks > 1 ? " of a chunk" : "";
  const std::string facts = fmt::format(", copies of {} x {} values{}, in bytes",
                                        grouped(logits.rows), grouped(logits.vocabulary), chunk);
  std::string last = "--loss-chunks N computes them for an Nth of the rows at a time";
  if (logits.chunks > 1) {
    const std::int64_t saved = logits.peak_whole - plan.steady.peak.bytes;
    last = fmt::format("{} chunks: a peak {} {} than with all logits at once ({})", logits.chunks,
                       human_text(std::abs(saved)), saved < 0 ? "higher" : "lower",
                       human_text(logits.peak_whole));
  }
  return heading("Logits and loss", facts, style) + table.text(style) + "  " +
         wrapped(last, 2, 4, style.width) + "\n";
}

// --- ranks

std::string traffic_section(const Plan& plan, const TextStyle& style) {
  if (plan.traffic.empty()) return "";
  Table table({{"", Align::kLeft}, {"", Align::kLeft}, {""}, {""}, {"", Align::kWrap}});
  std::int64_t sum = 0;
  for (const plan::TrafficLine& line : plan.traffic) {
    sum = checked_add(sum, line.bytes);
    table.row({line.what, fmt::format("{} {}", grouped(line.units), line.collective),
               bytes_text(line.bytes), human_text(line.bytes), line.formula});
  }
  table.rule();
  table.row(
      {"sum", "", bytes_text(sum), human_text(sum),
       fmt::format("R = {}, e = {}", plan.job.ranks, network::size_of(plan.job.recipe().compute))});
  return heading("Traffic", " per rank and step: bytes taken from other ranks, padding included",
                 style) +
         table.text(style);
}

std::string advice_section(const Plan& plan, const TextStyle& style) {
  if (plan.advice.empty()) return "";
  std::string text = heading("Advice", "", style);
  for (const std::string& line : plan.advice) {
    text += "  - " + wrapped(line, 4, 4, style.width) + "\n";
  }
  return text;
}

std::string evidence_section(const Plan& plan, const TextStyle& style) {
  const auto facts = network::fact_list(plan.job.backend);
  const auto count = [&](network::Evidence evidence) {
    return std::count_if(facts.begin(), facts.end(),
                         [&](const network::Fact& f) { return f.evidence == evidence; });
  };
  std::string text =
      fmt::format(" of the library's facts: {} measured, {} from its source, {} assumed",
                  count(network::Evidence::kMeasured), count(network::Evidence::kSource),
                  count(network::Evidence::kAssumed));
  text = heading("Evidence", text, style);
  for (const network::Fact& fact : assumed_facts(plan.job.backend)) {
    text += "  - " +
            wrapped(fmt::format("assumed: {}: {} ({})", fact.what, fact.value, fact.source), 4, 4,
                    style.width) +
            "\n";
  }
  return text;
}

}  // namespace

std::string plan_text(const Plan& plan, ShownStep shown, const TextStyle& style) {
  const bool first = shown == ShownStep::kFirst;
  const StepTimeline& step = first ? plan.first : plan.steady;
  const char* which = first ? "first" : "steady";
  const std::vector<std::string> sections = {
      model_line(plan.spec, plan.parameters, style) + job_lines(plan.spec, plan.job, style),
      plan.fit ? fit_section(*plan.fit, plan.job, style) : "",
      posts_section(plan, style),
      peak_section(step, which, style),
      phases_section(plan, step, which, style),
      memory_section(plan, style),
      ledger_section(plan, style),
      logits_section(plan, style),
      traffic_section(plan, style),
      advice_section(plan, style),
      flops_section(plan, style),
      semantics_section(plan, style),
      closed_form_section(plan, style),
      evidence_section(plan, style),
      assumption_lines(plan.spec, plan.job, style)};
  std::string text;
  for (const std::string& section : sections) {
    if (!section.empty()) text += (text.empty() ? "" : "\n") + section;
  }
  return text;
}

}  // namespace plimsoll::report
