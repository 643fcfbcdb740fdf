// What the backend `nccl` has to do, for torchrun:
//   torchrun --nproc-per-node N --no-python nccl_ranks
// Numbers are small and whole, so that sums are exact in any order.
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/engine/nccl/nccl.hpp"

namespace {

using namespace plimsoll;
using comm::Communicator;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

template <class T>
void sums(Communicator& world) {
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<T> input(3 * ranks), piece(3), whole(3 * ranks);
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] = static_cast<T>(i + static_cast<std::size_t>(world.rank()));
  }
  const auto offset = static_cast<T>(ranks * (ranks - 1) / 2);
  const auto in = comm::view(std::span<const T>(input));
  world.reduce_scatter(in, comm::view(std::span(piece)), {"pieces"}).wait();
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t at = 3 * static_cast<std::size_t>(world.rank()) + i;
    require(piece[i] == static_cast<T>(ranks * at) + offset, "reduce_scatter");
  }
  world.all_gather(comm::view(std::span<const T>(piece)), comm::view(std::span(whole)), {"all"})
      .wait();
  world.all_reduce(in, comm::view(std::span(input)), {"sums"}).wait();
  require(input == whole, "all_reduce, or reduce_scatter and all_gather");
}

int run(Communicator& world) {
  sums<float>(world);
  sums<double>(world);
  sums<std::int64_t>(world);
  double value = world.rank() == 0 ? 7 : 0;
  world.broadcast(comm::view(std::span(&value, 1)), 0).wait();
  require(value == 7, "broadcast");
  world.barrier().wait();
  if (world.rank() == 0) fmt::print("{} ranks agree\n", world.size());
  return 0;
}

}  // namespace

int main() { return engine::launch_nccl(run); }
