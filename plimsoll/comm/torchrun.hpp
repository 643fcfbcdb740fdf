// What torchrun tells the ranks that it starts. They are ranks of the backend nccl; shm and mpi refuse
// them, since each would be a world of its own.
#pragma once

#include <string>

#include "plimsoll/base/error.hpp"

namespace plimsoll::comm {

struct TorchrunRank {
  int rank = 0;               // RANK
  int size = 1;               // WORLD_SIZE
  int local_rank = 0;         // LOCAL_RANK: which device of its host
  std::string host;           // MASTER_ADDR
  int port = 0;               // MASTER_PORT
  bool agent_serves = false;  // TORCHELASTIC_USE_AGENT_STORE: torchrun serves the store, not rank 0
  std::string attempt = "0";  // TORCHELASTIC_RESTART_COUNT
};

// RANK and WORLD_SIZE are set.
bool started_by_torchrun();
// The environment of this process; an error (exit 2) names what is missing or wrong.
Result<TorchrunRank> torchrun_rank();

// Says on stderr that torchrun's ranks cannot be those of this backend, and what to do; `instead` is the
// start that it expects. Returns the exit code 2.
int refuse_torchrun(const std::string& instead);

}  // namespace plimsoll::comm
