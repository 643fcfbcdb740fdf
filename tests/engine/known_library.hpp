// For test cases whose events are those of the libtorch that the facts describe, and of no other.
#pragma once

#include <doctest/doctest.h>

#include "plimsoll/engine/library/version.hpp"

namespace plimsoll::tests {

// Skips the test case on another libtorch. doctest names it with -ltc, and counts it as skipped.
inline doctest::skip on_known_libtorch() { return doctest::skip(!engine::is_known_libtorch()); }

}  // namespace plimsoll::tests
