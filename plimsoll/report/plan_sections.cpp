#include "plimsoll/report/plan_sections.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/report/plan_figures.hpp"
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

// The least time of a step, where the job's device is known well enough.
std::string time_line(const Plan& plan) {
  return fmt::format("a step takes at least {}, bound by {}: peaks of {}, no communication",
                     with_prefix(plan.time->seconds, "s"), plan.time->by(), plan.job.device->name);
}

std::string error_text(double error) {
  return fmt::format("{:.1f} % {}", std::abs(100 * error), error < 0 ? "below" : "above");
}

// " of the steady step"; passes of inference are alike.
std::string of_what(const Plan& plan, ShownStep shown) {
  return plan.inference ? " of the pass" : fmt::format(" of the {} step", name(shown));
}

Section inference_posts_section(const Plan& plan) {
  const plan::InferencePosts& posts = *plan.inference;
  Table table({{"", Align::kLeft}, {""}, {""}, {"", Align::kWrap}});
  const auto add = [&](const char* name, std::int64_t bytes, const char* meaning) {
    table.row({name, bytes_text(bytes), human_text(bytes), meaning});
  };
  add("weights", plan.posts.parameters, "");
  add("KV cache", posts.kv_cache, "keys and values of all layers");
  add("inputs", posts.inputs, "token ids, tables of positions, masks");
  add("transients", posts.transients, "most that the pass has at once, logits among them");
  table.rule();
  add("sum",
      checked_add(plan.posts.parameters,
                  checked_add(posts.kv_cache, checked_add(posts.inputs, posts.transients))),
      "which is the peak");
  add("logits", posts.logits, "alive when the pass ends");
  return {"Posts", ", in bytes", "", std::move(table)};
}

}  // namespace

std::string_view name(ShownStep step) { return step == ShownStep::kFirst ? "first" : "steady"; }

const plan::StepTimeline& step_of(const plan::Plan& plan, ShownStep step) {
  return step == ShownStep::kFirst ? plan.first : plan.steady;
}

std::string peak_place(const StepTimeline& step) {
  std::string place = fmt::format("in {}", timeline::name(step.peak.phase.phase));
  if (!step.peak_operation.empty()) place += fmt::format(", at {}", step.peak_operation);
  return place;
}

Section posts_section(const Plan& plan) {
  if (plan.inference) return inference_posts_section(plan);
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
  return {"Posts", " per rank, in bytes", "", std::move(table)};
}

Section peak_section(const Plan& plan, ShownStep shown) {
  const StepTimeline& step = step_of(plan, shown);
  Table table({{"", Align::kLeft}, {""}, {""}, {""}});
  for (const timeline::AliveTag& alive : timeline::alive_tags(step.peak)) {
    table.row({std::string(timeline::name(alive.tag)), bytes_text(alive.bytes),
               human_text(alive.bytes), share_text(alive.bytes, step.peak.bytes)});
  }
  const std::string facts = fmt::format("{}: {} bytes ({})", of_what(plan, shown),
                                        bytes_text(step.peak.bytes), human_text(step.peak.bytes));
  return {"Peak", facts, peak_place(step) + "; alive then:", std::move(table)};
}

Section phases_section(const Plan& plan, ShownStep shown) {
  const StepTimeline& step = step_of(plan, shown);
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
  return {"Phases", of_what(plan, shown) + ", in bytes", "", std::move(table)};
}

Section ledger_section(const Plan& plan) {
  if (plan.inference) return {};
  Table table({{"", Align::kLeft}, {""}, {""}, {""}, {"", Align::kWrap}});
  for (const NamedLine& named : ledger_lines(plan.ledger)) {
    table.row(
        {std::string(named.name), bytes_text(named.line.bytes), human_text(named.line.bytes),
         fmt::format("{} {}", grouped(named.line.count), named.storages ? "storages" : "tensors "),
         std::string(named.meaning)});
  }
  return {"Saved for backward", " by one micro-batch, in bytes", "", std::move(table)};
}

Section flops_section(const Plan& plan) {
  const bool image = plan.spec.family == network::Family::kCnn;
  // One query sees all keys: there is no half.
  const bool halved = !image && plan.job.mode != plan::Mode::kDecode;
  network::FlopCount total;
  for (const PassLine& pass : pass_lines(plan.flops)) total += pass.flops;
  const bool readable = total.total_full() < kUnreadable;
  Table table({{"", Align::kLeft},
               {image ? "" : "attention full"},
               {halved ? "causal half" : ""},
               {image ? "" : "causal exact"},
               {""}});
  const auto for_people = [&](std::int64_t flops) {
    return readable ? human(Flops{flops}) : std::string();
  };
  const auto add = [&](std::string_view name, const network::FlopCount& flops) {
    const std::string half = halved ? grouped(flops.total_half()) : "";
    const std::string exact = image ? "" : grouped(flops.total_exact());
    table.row({std::string(name), grouped(flops.total_full()), half, exact,
               for_people(flops.total_full())});
  };
  for (const PassLine& pass : pass_lines(plan.flops)) {
    const bool always = pass.name != "recompute" && !plan.inference;
    if (always || pass.flops.total_full() > 0) add(pass.name, pass.flops);
  }
  if (plan.inference) return {"FLOPs", " of the pass", "", std::move(table)};
  table.rule();
  add("total", total);
  if (!image) {
    table.row({"6 N T rule", grouped(plan.rule_6nt), "", "", for_people(plan.rule_6nt)});
  }
  Section section{"FLOPs", " of one micro-batch", "", std::move(table)};
  if (plan.time) section.notes.push_back(time_line(plan));
  return section;
}

Section closed_form_section(const Plan& plan) {
  if (!plan.closed_form) return {};
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
  return {"Closed form", facts, "", std::move(table)};
}

Section traffic_section(const Plan& plan) {
  if (plan.traffic.empty()) return {};
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
  return {"Traffic", " per rank and step: bytes taken from other ranks, padding included", "",
          std::move(table)};
}

Section advice_section(const Plan& plan) {
  if (plan.advice.empty()) return {};
  return {"Advice", "", "", std::nullopt, plan.advice};
}

Section evidence_section(const Plan& plan) {
  const auto facts = network::fact_list(plan.job.backend);
  const auto count = [&](network::Evidence evidence) {
    return std::count_if(facts.begin(), facts.end(),
                         [&](const network::Fact& f) { return f.evidence == evidence; });
  };
  Section section{
      "Evidence",
      fmt::format(" of the library's facts: {} measured, {} from its source, {} assumed",
                  count(network::Evidence::kMeasured), count(network::Evidence::kSource),
                  count(network::Evidence::kAssumed)),
      ""};
  for (const network::Fact& fact : assumed_facts(plan.job.backend)) {
    section.items.push_back(
        fmt::format("assumed: {}: {} ({})", fact.what, fact.value, fact.source));
  }
  return section;
}

}  // namespace plimsoll::report
