// What a plan with ranks advises: where another stage is better in everything, and where sharding only
// costs. Compares whole calculated runs, not formulas.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::plan {

// One sentence each, best first; none when the stage is a sensible choice. `peak` is the job's own
// steady peak. Other stages are walked at the same ranks: a few milliseconds.
std::vector<std::string> sharding_advice(const network::Network& network, const Job& job,
                                         std::int64_t peak);

}  // namespace plimsoll::plan
