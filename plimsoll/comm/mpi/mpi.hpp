// Ranks on many hosts: the backend `mpi`. Optional: built when CMake finds an MPI (PLIMSOLL_MPI);
// otherwise the same functions say that it is missing.
//
// Ranks come from outside: `mpirun -n 4 program ...` or Slurm. Tested with MPICH 5.
//
// [Note: Collectives on MPI] Only data movement is left to MPI, in nonblocking collectives of bytes;
// sums are added here in rank order, so they have the bits of every other backend. reduce_scatter is
// an all-to-all and a sum, which needs R pieces of memory besides; all_reduce needs two copies of
// its tensor; that memory is kept for the next call. Beside each collective the ranks gather 64 bytes that
// say what they call, and compare them. Waits test, and after the time that the data could take sleep
// 100 us in between, since MPI's own waits burn a core. Data move only while this rank is inside a
// call of the communicator.
//
// [Note: Failures on MPI] MPI has no deadlines and no news of peers. Here a rank that cannot go on tells
// all others why (world.hpp), and those throw it from their waits: PeerLost when a peer threw, gave up or
// returned a code, Mismatch, Timeout with the first rank that did not answer. When all have told how
// they end, the rank that had the first cause prints it, once, and ends the job with its exit code; a
// rank that is silent for `grace` is not waited for. A rank that is killed or exits takes the job with it: no
// handler of a survivor runs, and message and exit code are the launcher's. After `_exit(0)` some
// launchers report success: trust end markers, not that code.
#pragma once

#include <functional>

#include "plimsoll/comm/communicator.hpp"

namespace plimsoll::comm {

// Whether this build has MPI.
bool mpi_is_available();

struct MpiOptions {
  Milliseconds timeout{300'000};  // of Work::wait() without an argument
  Milliseconds grace{5'000};      // from this rank's failure until the job is ended
};

// Initialises MPI, runs `body` as this process's rank and finalises. Returns body's result, or an
// exit code as launch() does; 2 for a rank of torchrun, 3 when this build has no MPI. Call it once,
// before any other use of MPI. A result other than 0 ends the whole job: at once and without a word when
// all ranks return the same one (they have agreed), else it is that rank's failure.
int launch_mpi(int argc, char** argv, const std::function<int(Communicator&)>& body,
               const MpiOptions& options = {});

}  // namespace plimsoll::comm
