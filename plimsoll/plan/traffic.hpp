// Traffic of a plan: what one rank takes from others in one step, counted by the calculated run, and
// the formula that people know it by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/plan/step_traffic.hpp"

namespace plimsoll::plan {

struct TrafficLine {
  std::string what;        // "gather parameters", "reduce gradients", "gather updated parameters"
  std::string collective;  // "all-gather", "reduce-scatter", "all-reduce"
  std::int64_t units = 0;  // collectives of a unit in one step
  std::int64_t bytes = 0;  // padding included
  std::string formula;     // without padding; Psi elements, Psi_root those of the root
  std::int64_t formula_bytes = 0;  // the formula in whole bytes, rounded down
};
// None on one rank. `traffic` is the walk's, of this network and job.
std::vector<TrafficLine> traffic_lines(const network::Network& network, const Job& job,
                                       const StepTraffic& traffic);

// Elements per step and rank, in units of Psi (R - 1) / R, on paper: `naive` is how ZeRO is often
// described and first built (stage 1: all-reduce of gradients, then gather of parameters), `ours` what
// this schedule moves. `root_share` = Psi_root / Psi.
struct TextbookTraffic {
  double naive = 0;
  double ours = 0;
};
TextbookTraffic textbook_traffic(shard::Stage stage, double root_share, bool reshard_root);

}  // namespace plimsoll::plan
