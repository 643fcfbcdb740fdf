// Collectives at 64 MB beside a raw copy: comm_bench [RANKS] on shared memory, or
// `mpirun -n RANKS comm_bench mpi`.
//
// [Note: Beside a raw copy] The reference is a memcpy of 64 MB that every rank makes at the same time
// as the others, private memory to private memory. Collective and copy alternate in pairs; both are
// timed on rank 0 from one barrier to the next, so the slowest rank counts. A gather of 64 MB whose
// inputs peers can read writes what the copy writes: 1.0 is its limit. A reduce-scatter reads all
// and writes 1 / R of it.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/units.hpp"
#include "plimsoll/comm/call.hpp"
#include "plimsoll/comm/launch.hpp"
#include "plimsoll/comm/mpi/mpi.hpp"

#include "bench/harness.hpp"

namespace {

using namespace plimsoll;
using namespace plimsoll::bench;
using comm::Communicator;
using comm::DType;
using comm::Kind;

constexpr std::int64_t kBytes = 64 * kMiB;
constexpr std::size_t kPairs = 21;

// A call of `kind` whose larger side has kBytes, with its memory.
struct Exchange {
  comm::Buffer input, output;
  comm::Call call;
};

Exchange make(Communicator& world, Kind kind, DType dtype, bool shared_input, bool common) {
  const std::int64_t whole = kBytes / size_of(dtype);
  const std::int64_t piece = whole / world.size();
  const std::int64_t inputs = kind == Kind::kAllGather ? piece : whole;
  const std::int64_t outputs = kind == Kind::kReduceScatter ? piece : whole;
  const bool sums = kind != Kind::kAllGather;
  const DType result = sums ? comm::sum_dtype(dtype) : dtype;
  const auto memory = [&](std::int64_t bytes, bool shared) {
    if (shared) return world.allocate(bytes);
    const auto count = static_cast<std::size_t>(bytes);
    return comm::Buffer({new std::byte[count], std::default_delete<std::byte[]>()}, bytes, false);
  };
  Exchange exchange;
  exchange.input = memory(inputs * size_of(dtype), shared_input);
  exchange.output = common ? world.allocate(outputs * size_of(result), comm::Sharing::kCommon)
                           : memory(outputs * size_of(result), false);
  std::memset(exchange.input.data(), 0, static_cast<std::size_t>(exchange.input.bytes()));
  exchange.call = {kind,
                   {exchange.input.data(), inputs, dtype},
                   {exchange.output.data(), outputs, result},
                   -1,
                   {"bench"}};
  return exchange;
}

// Everything between two barriers; one more before so that all begin together.
Elapsed together(Communicator& world, const std::function<void()>& work) {
  world.barrier().wait();
  return elapsed([&] {
    work();
    world.barrier().wait();
  });
}

class Bench {
 public:
  explicit Bench(Communicator& world)
      : world_(world),
        from_(static_cast<std::size_t>(kBytes), std::byte{1}),
        to_(from_.size()),
        report_(fmt::format("Collectives of 64 MiB on {} ranks, beside a memcpy of 64 MiB by every "
                            "rank at once (wall time)",
                            world.size())) {}

  void row(const std::string& what, Kind kind, DType dtype, bool shared, bool common) {
    Exchange exchange = make(world_, kind, dtype, shared, common);
    const auto collective = [&] {
      return together(world_, [&] { comm::begin(world_, exchange.call).wait(); });
    };
    const auto copy = [&] {
      return together(world_, [&] { std::memcpy(to_.data(), from_.data(), to_.size()); });
    };
    collective();  // pages come into being
    copy();
    const Pairs pairs = interleave(kPairs, collective, copy);
    report_.row(what, pairs.first(Clock::kWall), 1e3, "ms");
    report_.row("  against the copy", pairs.ratio(Clock::kWall), 1, "x");
  }

  void barriers() {
    const Summary hundred = repeat(2, kPairs, Clock::kWall, [&] {
      for (int i = 0; i < 100; ++i) world_.barrier().wait();
    });
    report_.row("barrier", hundred, 1e4, "us");
  }

  void print() const {
    if (world_.rank() == 0) report_.print();
  }

 private:
  Communicator& world_;
  std::vector<std::byte> from_;
  std::vector<std::byte> to_;
  Report report_;
};

int run(Communicator& world, bool shares) {
  Bench bench(world);
  bench.row("all_gather, private memory", Kind::kAllGather, DType::kFloat32, false, false);
  if (shares) {
    bench.row("all_gather, shared inputs", Kind::kAllGather, DType::kFloat32, true, false);
    bench.row("all_gather, common output", Kind::kAllGather, DType::kFloat32, false, true);
  }
  bench.row("reduce_scatter, private memory", Kind::kReduceScatter, DType::kFloat32, false, false);
  if (shares) {
    bench.row("reduce_scatter, shared inputs", Kind::kReduceScatter, DType::kFloat32, true, false);
    bench.row("reduce_scatter of bf16, shared inputs", Kind::kReduceScatter, DType::kBFloat16, true,
              false);
  }
  bench.row("all_reduce, private memory", Kind::kAllReduce, DType::kFloat32, false, false);
  if (shares) {
    bench.row("all_reduce, shared inputs", Kind::kAllReduce, DType::kFloat32, true, false);
  }
  bench.barriers();
  bench.print();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "2";
  if (first == "mpi") {
    return comm::launch_mpi(argc, argv, [](Communicator& world) { return run(world, false); });
  }
  return comm::launch(argc, argv, std::atoi(first.c_str()),
                      [](Communicator& world) { return run(world, true); });
}
