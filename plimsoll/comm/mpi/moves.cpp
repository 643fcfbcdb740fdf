#include "plimsoll/comm/mpi/moves.hpp"

#include <climits>

#include "plimsoll/comm/mpi/world.hpp"

namespace plimsoll::comm {
namespace {

// `bytes` bytes as one element of a type.
class ByteBlock {
 public:
  explicit ByteBlock(std::int64_t bytes) {
    constexpr std::int64_t kPage = 1 << 20;
    const int whole = static_cast<int>(bytes / kPage);
    const int rest = static_cast<int>(bytes % kPage);
    MPI_Datatype page = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(kPage), MPI_BYTE, &page);
    int counts[2] = {whole, rest};
    MPI_Aint places[2] = {0, static_cast<MPI_Aint>(whole * kPage)};
    MPI_Datatype types[2] = {page, MPI_BYTE};
    MPI_Type_create_struct(2, counts, places, types, &type_);
    MPI_Type_commit(&type_);
    MPI_Type_free(&page);
  }
  // Freed types live on until the operations that use them are complete.
  ~ByteBlock() { MPI_Type_free(&type_); }
  ByteBlock(const ByteBlock&) = delete;
  ByteBlock& operator=(const ByteBlock&) = delete;
  MPI_Datatype type() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace

MPI_Request mpi_gather(MPI_Comm comm, const void* input, void* output, std::int64_t bytes,
                       bool in_place) {
  MPI_Request request = MPI_REQUEST_NULL;
  const void* source = in_place ? MPI_IN_PLACE : input;
  if (bytes <= INT_MAX) {
    const int count = static_cast<int>(bytes);
    require_mpi(MPI_Iallgather(source, count, MPI_BYTE, output, count, MPI_BYTE, comm, &request),
                "MPI_Iallgather");
    return request;
  }
  const ByteBlock block(bytes);
  require_mpi(MPI_Iallgather(source, 1, block.type(), output, 1, block.type(), comm, &request),
              "MPI_Iallgather");
  return request;
}

MPI_Request mpi_all_to_all(MPI_Comm comm, const void* input, void* output, std::int64_t bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (bytes <= INT_MAX) {
    const int count = static_cast<int>(bytes);
    require_mpi(MPI_Ialltoall(input, count, MPI_BYTE, output, count, MPI_BYTE, comm, &request),
                "MPI_Ialltoall");
    return request;
  }
  const ByteBlock block(bytes);
  require_mpi(MPI_Ialltoall(input, 1, block.type(), output, 1, block.type(), comm, &request),
              "MPI_Ialltoall");
  return request;
}

MPI_Request mpi_broadcast(MPI_Comm comm, void* data, std::int64_t bytes, int root) {
  MPI_Request request = MPI_REQUEST_NULL;
  const ByteBlock block(bytes);
  require_mpi(MPI_Ibcast(data, 1, block.type(), root, comm, &request), "MPI_Ibcast");
  return request;
}

MPI_Request mpi_barrier(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  require_mpi(MPI_Ibarrier(comm, &request), "MPI_Ibarrier");
  return request;
}

}  // namespace plimsoll::comm
