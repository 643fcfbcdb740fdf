// Ranks with a CUDA device each: the backend `nccl`, over c10d::ProcessGroupNCCL. Built only against a
// libtorch with CUDA (cmake/PlimsollNccl.cmake); otherwise the same functions say what is missing. No
// result of it was compared on a card by this version.
//
// Ranks come from torchrun and meet at its store (MASTER_ADDR, MASTER_PORT).
//
// [Note: Sums on NCCL] They are NCCL's own and not bit-identical to the other backends: the order of the
// ranks depends on its algorithm, the number of ranks and its version. 16-bit floats are widened before
// they are sent, so their sums are fp32 and travel as 4 bytes.
//
// Views may lie in the memory of this rank's device or of the host; host memory is copied to the device
// and back. allocate() gives host memory. A collective begins behind the work of the current stream, and
// Work::wait returns when its results are complete on the device.
//
// [Note: Failures on NCCL] launch_nccl puts a Checked around the world, so whatever differs is a
// Mismatch. The first cause is left in the store, where waits of the other ranks look for it; a rank that
// dies without a word ends theirs as Timeout (rank -1), or as PeerLost when it served the store.
#pragma once

#include <functional>

#include "plimsoll/comm/communicator.hpp"

namespace plimsoll::engine {

// Whether this build has the backend.
bool nccl_is_available();

struct NcclOptions {
  comm::Milliseconds timeout{300'000};  // of Work::wait() without an argument
};

// Runs `body` as the rank that torchrun started, on device LOCAL_RANK, and returns its result, or an exit
// code as comm::launch() does: 2 without torchrun's environment, 3 when this build has no NCCL or this
// host has no device for the rank.
int launch_nccl(const std::function<int(comm::Communicator&)>& body,
                const NcclOptions& options = {});

}  // namespace plimsoll::engine
