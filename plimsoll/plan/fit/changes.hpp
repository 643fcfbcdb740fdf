// The cheapest changes of a job that make it fit. Each one was planned again and fits; none is found by
// formula.
//
// What changes cost, cheapest first; within one kind by FLOPs, then by traffic:
//   the same step        checkpointing, a higher stage, smaller micro-batches accumulated to the same
//                        batch: the same numbers, sums in another order
//   more ranks           other machines; each rank keeps its batch, the global batch grows
//   other arithmetic     precision, dtype of the states, another optimizer: training itself changes
//   less work            a shorter sequence
// Of inference: a narrower precision or cache, a shorter sequence or context, fewer rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/plan/fit/need.hpp"

namespace plimsoll::plan {

enum class ChangeCost : std::uint8_t { kSameStep, kMoreRanks, kOtherArithmetic, kLessWork };
std::string_view name(ChangeCost cost);  // "same step", "more ranks" ...

// An option of the command line: {"--checkpoint", "block"}.
struct Setting {
  std::string option;
  std::string value;
  bool operator==(const Setting&) const = default;
};

struct Change {
  std::vector<Setting> settings;
  Job job;    // with them
  Need need;  // of that job, planned: it fits
  ChangeCost cost = ChangeCost::kSameStep;
  std::int64_t saved = 0;    // bytes of one rank
  double flops = 1;          // of a step, relative to the job as it was
  std::int64_t traffic = 0;  // bytes per step and rank more than before
  std::string command;       // ready to be typed; filled in by the command line
};

struct Changes {
  std::vector<Change> found;  // at most three, cheapest first
  std::string reason;         // why there is none; else empty
};

// For a job that does not fit, `need` being what it needs. Single changes; combinations of two, and
// then of three, only while fewer than three were found, and only if no part of one fits by itself.
// Each option is changed as little as suffices.
Changes cheapest_changes(NeedSearch& search, const Job& job, const Need& need);

}  // namespace plimsoll::plan
