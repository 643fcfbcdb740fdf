// Groups without peers: `self`, a world of one rank, and `fake`, one rank of a world that is not
// there.
#pragma once

#include <memory>

#include "plimsoll/comm/communicator.hpp"

namespace plimsoll::comm {

// The world of size 1. Collectives are complete when the call returns: exact copies, or widenings
// for sums of 16-bit floats.
std::unique_ptr<Communicator> make_self();

// Rank `rank` of `size` without peers, for dry runs: the counts, types and order of calls are checked
// as anywhere, nothing waits. Views may have null pointers (meta tensors): then nothing is copied.
// With memory, results are as if every rank had the same input as this one: an approximation that
// keeps values finite and deterministic.
std::unique_ptr<Communicator> make_fake(int rank, int size);

}  // namespace plimsoll::comm
