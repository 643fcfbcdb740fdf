// The calculated run as trace events, which Perfetto and chrome://tracing open: nested slices for
// steps and phases, slices for operations, one counter per tag and one for their sum.
//
// The axis is no time: one microsecond stands for one event of memory. Nothing is thinned; micro-batches
// that repeat the figures of the one before are left out (see phase_runs).
#pragma once

#include <string>

#include "plimsoll/plan/plan.hpp"

namespace plimsoll::report {

// JSON of the Chrome trace event format, one event a line: phase "model", the first and the steady step.
std::string trace_json(const plan::Plan& plan);

}  // namespace plimsoll::report
