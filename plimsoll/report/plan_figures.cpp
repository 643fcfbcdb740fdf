#include "plimsoll/report/plan_figures.hpp"

#include <algorithm>
#include <cmath>

namespace plimsoll::report {

std::vector<AliveTag> alive_tags(const timeline::Peak& peak) {
  std::vector<AliveTag> tags;
  for (std::size_t i = 0; i < peak.alive.size(); ++i) {
    if (peak.alive[i] != 0) tags.push_back({static_cast<timeline::Tag>(i), peak.alive[i]});
  }
  std::stable_sort(tags.begin(), tags.end(),
                   [](const AliveTag& a, const AliveTag& b) { return a.bytes > b.bytes; });
  return tags;
}

std::vector<NamedLine> ledger_lines(const plan::Ledger& ledger) {
  return {{"as_saved", "every save, parameters included", ledger.as_saved, false},
          {"without_parameters", "minus parameters and buffers", ledger.without_parameters, false},
          {"distinct", "each storage once: what is alive", ledger.distinct, true},
          {"distinct_hf", "distinct minus the inputs", ledger.distinct_hf, true}};
}

std::vector<PassLine> pass_lines(const plan::PassFlops& flops) {
  return {{"forward", flops.forward}, {"backward", flops.backward}, {"recompute", flops.recompute}};
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
