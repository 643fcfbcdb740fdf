#include <cstdlib>

#include "plimsoll/comm/mpi/mpi.hpp"

namespace plimsoll::comm {

bool started_by_mpi() {
  // MPICH and relatives, Open MPI, PMIx, Slurm's own start of several tasks.
  for (const char* variable : {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (std::getenv(variable) != nullptr) return true;
  }
  return false;
}

}  // namespace plimsoll::comm
