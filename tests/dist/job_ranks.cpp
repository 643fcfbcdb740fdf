// Ranks that run random sharded jobs and hold each one against the plan: every event of two steps,
// calculated = dry-run = measured per rank, shared buffers included, and traffic as recorded.
//   engine_ranks job_ranks R [FIRST LAST]     exit 0 when everything agrees
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

#include "plimsoll/comm/recording.hpp"
#include "plimsoll/comm/self.hpp"
#include "plimsoll/engine/zero/launch.hpp"
#include "plimsoll/plan/walk.hpp"

#include "tests/differential/differ.hpp"
#include "tests/differential/random_jobs.hpp"
#include "tests/dist/engine_ranks.hpp"

namespace plimsoll::tests {
namespace {

struct ShardedJob {
  RandomJob random;
  std::string text;
};

ShardedJob sharded_job(std::uint64_t seed, int ranks) {
  ShardedJob result{random_job(seed), {}};
  plan::Job& job = result.random.job;
  Chooser choose(seed * 7919 + static_cast<std::uint64_t>(ranks));
  job.optimizer_impl = plan::OptimizerImpl::kPlimsoll;
  job.ranks = ranks;
  job.stage = static_cast<shard::Stage>(choose.of({0, 1, 2, 3}));
  job.prefetch = choose.of({0, 1, 2});
  job.reshard_root = choose.chance(33) && job.loss_chunks == 1;  // refused by plan::validate
  job.reduce_each = choose.chance(67);
  job.snapshot = choose.chance(25);
  result.text = fmt::format("seed {}, ranks {}, stage {}, prefetch {}{}{}{}: {}", seed, ranks,
                            static_cast<int>(job.stage), job.prefetch,
                            job.reshard_root ? ", root resharded" : "",
                            job.reduce_each ? "" : ", reduced once",
                            job.snapshot ? ", a snapshot" : "", describe(result.random));
  return result;
}

using Phases = std::vector<timeline::PhaseEvents>;

Phases recorded_phases(const network::Network& net, const plan::Job& job, at::Device device,
                       comm::Communicator& world) {
  engine::RecordOptions options;
  options.device = device;
  options.world = &world;
  return timeline::comparable(engine::record_run(net, job, options));
}

void expect_same_events(const Phases& calculated, const Phases& seen, const ShardedJob& s,
                        const std::string& what) {
  const auto difference = timeline::first_difference(calculated, seen, timeline::Depth::kEvents);
  if (!difference) return;
  throw std::runtime_error(
      fmt::format("{}\n{} differs: {}", s.text, what, timeline::to_text(*difference)));
}

// Two steps, of which the walk counts the last. Units may be smaller than what a recording counts as a
// scalar; these runs exchange no scalars.
void expect_traffic(const plan::StepTraffic& calculated, const comm::Traffic& seen,
                    const ShardedJob& s) {
  const std::int64_t recorded = seen.bytes() + seen.small.bytes;
  if (recorded == 2 * calculated.bytes()) return;
  throw std::runtime_error(fmt::format("{}\ntraffic of two steps: {} recorded, {} calculated",
                                       s.text, recorded, 2 * calculated.bytes()));
}

void check_job(const ShardedJob& s, comm::Communicator& world) {
  const plan::Job& job = s.random.job;
  const network::Network net = network::build_network(s.random.spec, job.build_options());
  plan::WalkOptions options;
  options.steps = 2;
  plan::WalkResult result;
  const Phases calculated = timeline::comparable(plan::walk_timeline(net, job, options, &result));
  comm::Recording recording(world);
  expect_same_events(calculated, recorded_phases(net, job, at::kCPU, recording), s, "measured");
  if (job.sharded()) expect_traffic(result.traffic, recording.traffic(), s);
  const auto alone = comm::make_fake(world.rank(), world.size());
  expect_same_events(calculated, recorded_phases(net, job, at::kMeta, *alone), s, "dry run");
}

int check_jobs(comm::Communicator& world, std::uint64_t first, std::uint64_t last) {
  prepare_library();
  for (std::uint64_t seed = first; seed < last; ++seed) {
    check_job(sharded_job(seed, world.size()), world);
  }
  if (world.rank() == 0) fmt::print("{} jobs agree at {} ranks\n", last - first, world.size());
  return 0;
}

}  // namespace

int job_ranks(int argc, char** argv) {
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 2;
  const auto number = [&](int i, std::uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  return engine::zero::launch(argc, argv, ranks, [&](comm::Communicator& world) {
    return check_jobs(world, number(3, 0), number(4, 30));
  });
}

}  // namespace plimsoll::tests
