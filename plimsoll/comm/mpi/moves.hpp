// Data movement: nonblocking collectives of bytes, of any size (counts of MPI end at 2 GiB).
#pragma once

#include <cstdint>
#include <mpi.h>

namespace plimsoll::comm {

// Everybody's `bytes` one after the other in `output`; `in_place`: this rank's are there already.
MPI_Request mpi_gather(MPI_Comm comm, const void* input, void* output, std::int64_t bytes,
                       bool in_place);
// Piece r of `input` goes to rank r; `bytes` is that of a piece.
MPI_Request mpi_all_to_all(MPI_Comm comm, const void* input, void* output, std::int64_t bytes);
MPI_Request mpi_broadcast(MPI_Comm comm, void* data, std::int64_t bytes, int root);
MPI_Request mpi_barrier(MPI_Comm comm);

}  // namespace plimsoll::comm
