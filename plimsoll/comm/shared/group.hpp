// The Communicator over a shared segment, behind `shm` and `threads`.
//
// A call announces itself at once and moves its data when it is waited for, together with all calls
// before it; so waits in any order cannot hang each other. Inputs and outputs inside the segment
// (Communicator::allocate) are read and written where they are, others pass through staging slots.
//
// A wait also lasts until the others have taken what they need from this rank's own memory: they do
// that in their waits.
#pragma once

#include <memory>

#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/comm/shared/segment.hpp"

namespace plimsoll::comm {

// Rank `rank` of the world in `segment`; the world has at least two ranks.
std::unique_ptr<Communicator> make_world(std::shared_ptr<Segment> segment, int rank,
                                         Milliseconds timeout);

}  // namespace plimsoll::comm
