// A step that ended in numbers that are not finite: who was first, and where.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::engine {

// What is done with such a step.
enum class OnNotFinite : std::uint8_t {
  kStop,  // ends the run: TrainingFailed (exit code 1) on every rank
  kSkip,  // all ranks leave parameters and states as they are and go on with the next rows
};

struct FailedStep {
  std::int64_t step = 0;       // from 1
  std::vector<double> losses;  // by rank
  double gradient_norm = 0;
};

// Runs the forward passes of the step again, `fill(m)` writes the inputs of micro-batch m, and looks for
// the first operation, then rank, whose result is not finite. When there is none, the gradient made it:
// the unit that backward reaches first. Precondition: the step left parameters as they were and the
// random state is that of its beginning. Collective.
comm::Cause first_not_finite(Runner& runner, const plan::Job& job, comm::Communicator& world,
                             const FailedStep& failed, const std::function<void(int)>& fill);

}  // namespace plimsoll::engine
