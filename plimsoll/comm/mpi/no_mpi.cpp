// The backend `mpi` of a build without MPI.
#include <cstdio>

#include "plimsoll/base/error.hpp"
#include "plimsoll/comm/mpi/mpi.hpp"
#include "plimsoll/comm/mpirun.hpp"
#include "plimsoll/comm/torchrun.hpp"

namespace plimsoll::comm {

bool mpi_is_available() { return false; }

int launch_mpi(int, char**, const std::function<int(Communicator&)>&, const MpiOptions&) {
  if (started_by_torchrun() && !started_by_mpi()) {
    return refuse_torchrun("start the program with mpirun -n R");
  }
  std::fputs(
      "[mpi] this build has no MPI, expected one built with it. Hint: ./run test installs MPICH; "
      "-DPLIMSOLL_MPI=/path names another, then configure again; --ranks R needs no MPI on one "
      "host\n",
      stderr);
  return static_cast<int>(ExitCode::kEnvironment);
}

}  // namespace plimsoll::comm
