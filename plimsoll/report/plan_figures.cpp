#include "plimsoll/report/plan_figures.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace plimsoll::report {
namespace {

bool same_figures(const timeline::PhaseFigures& a, const timeline::PhaseFigures& b) {
  return a.key.phase == b.key.phase && a.start == b.start && a.end == b.end && a.peak == b.peak;
}

}  // namespace

std::vector<NamedLine> ledger_lines(const plan::Ledger& ledger) {
  return {{"as_saved", "every save, parameters included", ledger.as_saved, false},
          {"without_parameters", "minus parameters and buffers", ledger.without_parameters, false},
          {"distinct", "each storage once: what is alive", ledger.distinct, true},
          {"distinct_hf", "distinct minus the inputs", ledger.distinct_hf, true}};
}

std::vector<PassLine> pass_lines(const plan::PassFlops& flops) {
  return {{"forward", flops.forward}, {"backward", flops.backward}, {"recompute", flops.recompute}};
}

std::vector<PhaseRun> phase_runs(const std::vector<timeline::PhaseFigures>& phases) {
  std::vector<PhaseRun> runs;
  const bool reduces = std::any_of(
      phases.begin(), phases.end(),
      [](const timeline::PhaseFigures& f) { return f.key.phase == timeline::Phase::kReduce; });
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

std::vector<SemanticsLine> semantics_lines(const plan::Plan& plan) {
  if (!plan.hugging_face.figures) return {};
  const plan::SemanticsFigures& hf = *plan.hugging_face.figures;
  network::FlopCount own;
  for (const PassLine& pass : pass_lines(plan.flops)) own += pass.flops;
  return {{"peak", "of the steady step", plan.steady.peak.bytes, hf.peak},
          {"A", "what backward needs", plan.posts.activations, hf.activations},
          {"flops", "of one micro-batch, attention full", own.total_full(), hf.flops}};
}

std::int64_t whole_bytes(double bytes) { return std::llround(bytes); }

std::vector<network::Fact> assumed_facts(network::Backend backend) {
  std::vector<network::Fact> assumed;
  for (const network::Fact& fact : network::fact_list(backend)) {
    if (fact.evidence == network::Evidence::kAssumed) assumed.push_back(fact);
  }
  return assumed;
}

}  // namespace plimsoll::report
