// What mpirun, or Slurm with several tasks, tells the processes that it starts. Needs no MPI.
#pragma once

#include <optional>

namespace plimsoll::comm {

struct MpirunRank {
  std::optional<int> size;       // none: a launcher that tells it through the library alone
  std::optional<int> host_size;  // ranks on this host
};

// None for a process that nobody started as one of several: a plain start, `mpirun -n 1`, a batch script or
// a shell of Slurm, whose environment names a rank as well.
std::optional<MpirunRank> mpirun_rank();

inline bool started_by_mpi() { return mpirun_rank().has_value(); }

}  // namespace plimsoll::comm
