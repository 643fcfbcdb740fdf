// Figures that text and JSON of a plan both derive, so that the two cannot differ.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/network/library_facts.hpp"
#include "plimsoll/plan/plan.hpp"

namespace plimsoll::report {

// Consecutive micro-batches whose forward, loss and backward have the same figures.
struct PhaseRun {
  timeline::PhaseFigures figures;
  std::int32_t first = 0;  // micro-batch
  std::int32_t last = 0;
};
// The phases of a step in order of time; micro-batches that repeat the one before are folded into its
// runs.
std::vector<PhaseRun> phase_runs(const std::vector<timeline::PhaseFigures>& phases);

// "0", "1 to 7".
std::string micro_batches(const PhaseRun& run);

struct NamedLine {
  std::string_view name;
  std::string_view meaning;
  plan::LedgerLine line;
  bool storages = false;  // counts whole storages, not tensors
};
// The four counting conventions, in their fixed order.
std::vector<NamedLine> ledger_lines(const plan::Ledger& ledger);

struct PassLine {
  std::string_view name;
  network::FlopCount flops;
};
// forward, backward, recompute.
std::vector<PassLine> pass_lines(const plan::PassFlops& flops);

// A figure of the plan beside the same one of semantics hf.
struct SemanticsLine {
  std::string_view name;  // "peak", "A", "flops"
  std::string_view meaning;
  std::int64_t own = 0;
  std::int64_t other = 0;
  std::int64_t difference() const { return other - own; }
};
// None when the plan has no figures of hf.
std::vector<SemanticsLine> semantics_lines(const plan::Plan& plan);

// A post of the closed form in whole bytes.
std::int64_t whole_bytes(double bytes);

// The facts of a backend that nobody has measured or read: a plan that rests on them says so.
std::vector<network::Fact> assumed_facts(network::Backend backend);

}  // namespace plimsoll::report
