// Why measured bytes may differ from the plan's, when it is known.
#pragma once

#include <string>

#include "plimsoll/plan/job.hpp"

namespace plimsoll::engine {

// What of the library and the processor decides about scratch memory.
struct LibraryState {
  std::string version;             // of libtorch
  bool known = true;               // the facts describe this version
  bool reference_kernels = false;  // [Note: Reference kernels]
  bool multiplies_bf16 = false;    // the processor has 16-bit units
};
LibraryState library_state();

// "" when nothing is known. `transient`: of a peak; else of what is left at a phase's end.
std::string difference_cause(const plan::Job& job, const LibraryState& state, bool transient);

}  // namespace plimsoll::engine
