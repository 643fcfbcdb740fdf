// Ranks on many hosts: the backend `mpi`. Optional: built when CMake finds an MPI (PLIMSOLL_MPI);
// otherwise the same functions say that it is missing.
//
// Ranks come from outside: `mpirun -n 4 program ...` or Slurm. Tested with MPICH 5.
//
// [Note: Collectives on MPI] Only data movement is left to MPI, in nonblocking collectives of bytes;
// sums are added here in rank order, so they have the bits of every other backend. reduce_scatter is
// an all-to-all and a sum, which needs R pieces of memory besides; all_reduce needs two copies of
// its tensor; that memory is kept for the next call. Waits test, and after the time that the data could
// take sleep 100 us in between, since MPI's own waits burn a core. Data move only while this rank is
// inside a call of the communicator.
//
// [Note: Failures on MPI] MPI has no deadlines and no news of peers. Work::wait throws Timeout, which
// cannot say who is late (rank -1), and Mismatch, since launch_mpi puts a Checked around the world.
// When `body` throws, the rank prints the cause and ends the whole job (MPI_Abort), peers included.
// A rank that is killed or exits takes the job with it; the launcher's message and exit code are
// MPI's own. After `_exit(0)` some launchers report success: trust end markers, not that code.
#pragma once

#include <functional>

#include "plimsoll/comm/communicator.hpp"

namespace plimsoll::comm {

// Whether this build has MPI.
bool mpi_is_available();

// Whether an MPI launcher or Slurm has started this process, by its environment variables.
bool started_by_mpi();

struct MpiOptions {
  Milliseconds timeout{300'000};  // of Work::wait() without an argument
};

// Initialises MPI, runs `body` as this process's rank and finalises. Returns body's result, or an
// exit code as launch() does; 2 for a rank of torchrun, 3 when this build has no MPI. Call it once, before any other use of
// MPI. A result other than 0 ends the whole job.
int launch_mpi(int argc, char** argv, const std::function<int(Communicator&)>& body,
               const MpiOptions& options = {});

}  // namespace plimsoll::comm
