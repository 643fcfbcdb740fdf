#include "plimsoll/comm/mpi/moves.hpp"

#include <climits>

#include "plimsoll/comm/mpi/world.hpp"

namespace plimsoll::comm {
namespace {

// `bytes` bytes as MPI counts them: in ints, so that more than INT_MAX are one element of a type.
class Bytes {
 public:
  explicit Bytes(std::int64_t bytes) {
    if (bytes <= INT_MAX) {
      count_ = static_cast<int>(bytes);
      return;
    }
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
  ~Bytes() {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  int count_ = 1;
  MPI_Datatype type_ = MPI_BYTE;
};

}  // namespace

MPI_Request mpi_gather(MPI_Comm comm, const void* input, void* output, std::int64_t bytes,
                       bool in_place) {
  MPI_Request request = MPI_REQUEST_NULL;
  const void* source = in_place ? MPI_IN_PLACE : input;
  const Bytes n(bytes);
  require_mpi(
      MPI_Iallgather(source, n.count(), n.type(), output, n.count(), n.type(), comm, &request),
      "MPI_Iallgather");
  return request;
}

MPI_Request mpi_all_to_all(MPI_Comm comm, const void* input, void* output, std::int64_t bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  const Bytes n(bytes);
  require_mpi(
      MPI_Ialltoall(input, n.count(), n.type(), output, n.count(), n.type(), comm, &request),
      "MPI_Ialltoall");
  return request;
}

MPI_Request mpi_broadcast(MPI_Comm comm, void* data, std::int64_t bytes, int root) {
  MPI_Request request = MPI_REQUEST_NULL;
  const Bytes n(bytes);
  require_mpi(MPI_Ibcast(data, n.count(), n.type(), root, comm, &request), "MPI_Ibcast");
  return request;
}

MPI_Request mpi_barrier(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  require_mpi(MPI_Ibarrier(comm, &request), "MPI_Ibarrier");
  return request;
}

}  // namespace plimsoll::comm
