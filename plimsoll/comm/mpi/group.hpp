// The communicator of the backend `mpi`.
#pragma once

#include <memory>
#include <mpi.h>

#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/comm/mpi/world.hpp"

namespace plimsoll::comm {

// A group of the ranks of `comm`, which it duplicates: collective. `world` outlives it.
std::unique_ptr<Communicator> make_mpi_group(MPI_Comm comm, MpiWorld& world, Milliseconds timeout);

}  // namespace plimsoll::comm
