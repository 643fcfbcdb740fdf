// All that `plimsoll fit` says about a model on a device: how far one can go, and which stage and
// checkpoint policy to take.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plimsoll/plan/fit/fit.hpp"

namespace plimsoll::plan {

// The job at one stage and one checkpoint policy.
struct FitOption {
  shard::Stage stage = shard::Stage::kNothing;
  Checkpoint checkpoint = Checkpoint::kNone;
  Need need;
  double flops = 1;  // of a step, relative to the job as it was given
  std::optional<std::int64_t> largest_batch;
};

struct FitReport {
  network::NetworkSpec spec;
  Job job;
  network::ParameterCount parameters;
  Fit fit;
  LargestByClosedForm closed_form;
  std::optional<std::int64_t> longest_sequence;
  FewestRanks fewest_ranks;
  std::vector<FitOption> options;  // by stage, then by policy from none to block
  std::optional<std::size_t>
      best;  // of the options that fit: fewest FLOPs, then traffic, then bytes
};

// Refused: a job without a device, what plan::validate refuses, sizes that leave 64 bits.
Result<FitReport> make_fit_report(const network::NetworkSpec& spec, const Job& job);

}  // namespace plimsoll::plan
