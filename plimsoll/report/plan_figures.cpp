#include "plimsoll/report/plan_figures.hpp"

#include <cmath>

namespace plimsoll::report {

std::vector<NamedLine> ledger_lines(const plan::Ledger& ledger) {
  return {{"as_saved", "every save, parameters included", ledger.as_saved, false},
          {"without_parameters", "minus parameters and buffers", ledger.without_parameters, false},
          {"distinct", "each storage once: what is alive", ledger.distinct, true},
          {"distinct_hf", "distinct minus the inputs", ledger.distinct_hf, true}};
}

std::vector<PassLine> pass_lines(const plan::PassFlops& flops) {
  return {{"forward", flops.forward}, {"backward", flops.backward}, {"recompute", flops.recompute}};
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
