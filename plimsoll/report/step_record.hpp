// The calculated run of a plan looked at closely: the curve of one step, by tag, and the largest
// tensors at its peak. A plan alone keeps the figures of phases.
//
// Micro-batches that repeat the figures of the one before are in neither (see phase_runs).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/plan/plan.hpp"
#include "plimsoll/report/plan_sections.hpp"
#include "plimsoll/timeline/curve.hpp"

namespace plimsoll::report {

// What is shown of a step: its phases, and how they are called.
struct ShownPhases {
  std::vector<timeline::PhaseKey> keys;
  std::vector<std::string> names;  // "forward", "forward, micro-batches 1 to 7"
};

// Of the first step also the phase "model", in which everything begins.
ShownPhases shown_phases(const plan::Plan& plan, ShownStep shown);

// A block of memory alive at the peak.
struct AliveTensor {
  std::int64_t bytes = 0;
  timeline::Tag tag = timeline::Tag::kParameters;
  timeline::Phase phase = timeline::Phase::kModel;  // in which it was allocated
  std::string made_by;                              // operation, or parameter; empty: neither
};

struct StepRecord {
  ShownStep shown = ShownStep::kSteady;
  ShownPhases phases;
  timeline::Curve curve;
  std::vector<std::string> operations;  // names for the curve's operations
  std::vector<AliveTensor> largest;     // at the peak, largest first
};

inline constexpr std::size_t kLargestTensors = 15;

// Walks the job two more times. The curve has about `most_points` points, and all when there are no
// more; the peak and the borders of phases are never thinned out.
StepRecord record_step(const plan::Plan& plan, ShownStep shown, std::int64_t most_points = 1200);

// What made a block, or what an event belongs to. In phase "model" parameters stand in the place of
// operations.
std::string made_by(const std::string& operation, timeline::Phase phase);

}  // namespace plimsoll::report
