// Included by tests that compare events: reference kernels from the first product of the process on
// [Note: Reference kernels].
#pragma once

#include "plimsoll/engine/library/reference_kernels.hpp"

namespace plimsoll::tests {

inline const bool with_reference_kernels = engine::use_reference_kernels();

}  // namespace plimsoll::tests
