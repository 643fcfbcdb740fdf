// Sharded training on the ranks of this host: our stages against PyTorch's, and what prefetch hides.
//   shard_bench small|large [RANKS [PAIRS [STAGE]]]
//                                       steps of the 10M or the 124M GPT (2 ranks); fewer pairs or one
//                                       stage to explore, the goals ask for 9 pairs and more
//   shard_bench overlap                 stage 3 with 20 ms more per collective, prefetch 0 and 1
//
// [Note: Ranks and peers in turns] Our ranks and the peer's are alive all the time; while one side does a
// step the other waits in a system call. Both are timed on their rank 0 from a barrier to the end of the
// sum of the losses, by the wall's clock: ranks wait for each other, so CPU time would say nothing.
// The limit is a step of the same rows on every rank without a word between them.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/comm/delayed.hpp"
#include "plimsoll/engine/zero/launch.hpp"

#include "bench/gpt_shapes.hpp"
#include "bench/harness.hpp"
#include "bench/logged.hpp"
#include "bench/paced_peer.hpp"

namespace {

using namespace plimsoll;
using namespace plimsoll::bench;
using comm::Communicator;
using nlohmann::json;
using tests::ClosedFormRun;

struct Matchup {
  shard::Stage stage;
  const char* mode;  // of peer_train.py
  const char* name;
  double small_goal, large_goal;  // speed against it at 2 ranks
};
constexpr Matchup kMatchups[] = {
    {shard::Stage::kParameters, "fsdp2", "FSDP2", 1.15, 1.0},
    {shard::Stage::kGradients, "fsdp2_zero2", "FSDP2, not resharded", 1.15, 1.0},
    {shard::Stage::kNothing, "ddp", "DDP", 0.98, 0.98},
    {shard::Stage::kOptimizer, "zero1", "ZeroRedundancyOptimizer", 0.98, 0.98},
};

double mean_over_ranks(Communicator& world, double value) {
  double sum = 0;
  world.all_reduce({&value, 1, comm::DType::kFloat64}, {&sum, 1, comm::DType::kFloat64}).wait();
  return sum / world.size();
}

std::int64_t highest_over_ranks(Communicator& world, std::int64_t own) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(world.size()));
  world.all_gather(comm::view(std::span<const std::int64_t>(&own, 1)), comm::view(std::span(all)))
      .wait();
  return *std::max_element(all.begin(), all.end());
}

// One side's unit of work, between two barriers.
Elapsed together(Communicator& world, const std::function<Elapsed()>& work) {
  world.barrier().wait();
  const Elapsed time = work();
  world.barrier().wait();
  return time;
}

class Duel {
 public:
  Duel(Communicator& world, const Shape& shape, const Matchup& matchup, std::size_t pairs)
      : world_(world),
        shape_(shape),
        matchup_(matchup),
        pairs_(pairs),
        run_(config_of(shape, shape.batch * world.size()), {&world, matchup.stage}) {
    if (world.rank() == 0) {
      peer_ = std::make_unique<PacedGroup>("peer_train.py", peer_arguments(shape, matchup.mode),
                                           world.size());
    }
  }

  void fight(Report& report) {
    const double first_loss = mean_over_ranks(world_, run_.step());
    for (int i = 0; i < 2; ++i) theirs();
    const Pairs duels = interleave(
        pairs_, [&] { return theirs(); }, [&] { return ours(); });
    const Pairs limits = against_limit();
    const auto own_peak = static_cast<double>(highest_over_ranks(world_, metered_peak(run_)));
    if (!peer_) return;
    const json said = peer_->finish();
    check_loss(first_loss, said);
    const Summary own = duels.second(Clock::kWall);
    const Summary other = duels.first(Clock::kWall);
    const Summary bound = limits.first(Clock::kWall);
    report.row("a step, plimsoll", own, 1e3, "ms");
    report.row(fmt::format("a step, {}", matchup_.name), other, 1e3, "ms");
    report.strict_row(fmt::format("tokens/s against {}", matchup_.name), duels.ratio(Clock::kWall),
                      1, "ratio", goal());
    report.row("share of the limit, plimsoll", limits.ratio(Clock::kWall), 1, "ratio");
    report.exact(fmt::format("share of the limit, {} (medians)", matchup_.name),
                 bound.median / other.median, "ratio");
    const double peer_peak = said["peak_bytes"];
    report.exact(fmt::format("peak of a rank, {}", matchup_.name), peer_peak, "bytes");
    report.exact("peak of a rank, plimsoll", own_peak, "bytes", at_most(peer_peak));
  }

 private:
  Goal goal() const {
    if (world_.size() != 2) return {};
    return at_least(&shape_ == &kGpt10M ? matchup_.small_goal : matchup_.large_goal);
  }

  // The run without words lives here alone: a rank's peak counts all of its process.
  Pairs against_limit() {
    ClosedFormRun alone(config_of(shape_, shape_.batch));
    alone.step();
    const auto limit = [&] {
      alone.step();
      world_.barrier().wait();
    };
    constexpr std::size_t kEnough = 9;  // reported, not judged
    return interleave(
        std::min(pairs_, kEnough), [&] { return together(world_, [&] { return elapsed(limit); }); },
        [&] { return ours(); });
  }

  Elapsed theirs() {
    return together(world_, [&] { return peer_ ? peer_->step() : Elapsed{}; });
  }
  Elapsed ours() {
    return together(world_, [&] { return elapsed([&] { mean_over_ranks(world_, run_.step()); }); });
  }

  Communicator& world_;
  const Shape& shape_;
  const Matchup& matchup_;
  const std::size_t pairs_;
  ClosedFormRun run_;
  std::unique_ptr<PacedGroup> peer_;  // on rank 0
};

struct Wanted {
  const Shape& shape;
  std::size_t pairs;
  int stage;  // -1: all of them
};

// A table for each matchup as soon as it is there: all of them take minutes.
int duels(Communicator& world, const Wanted& wanted) {
  at::set_num_threads(1);
  const Shape& shape = wanted.shape;
  for (const Matchup& matchup : kMatchups) {
    if (wanted.stage >= 0 && wanted.stage != static_cast<int>(matchup.stage)) continue;
    Report report(
        fmt::format("Stage {} against {}: {}, batch {} a rank, sequence {}, fp32, AdamW, {} "
                    "ranks of one thread (wall time)",
                    static_cast<int>(matchup.stage), matchup.name, shape.name, shape.batch,
                    shape.sequence, world.size()));
    Duel(world, shape, matchup, wanted.pairs).fight(report);
    if (world.rank() == 0) report.print();
  }
  return 0;
}

// --- overlap ------------------------------------------------------------------------------------

int overlap(Communicator& world) {
  at::set_num_threads(1);
  constexpr comm::Milliseconds kDelay{20};
  const Shape& shape = kGpt10M;
  Report report(fmt::format("Prefetch: {}, stage 3, 2 ranks, {} ms more for each collective",
                            shape.name, kDelay.count()));
  std::string order;
  for (int prefetch : {0, 1}) {
    comm::Delayed delayed(world, kDelay);
    Logged logged(delayed);
    ClosedFormRun run(config_of(shape, shape.batch * world.size()),
                      {&logged, shard::Stage::kParameters, prefetch});
    run.step();
    logged.clear();
    std::vector<double> steps, waits;
    for (int i = 0; i < 9; ++i) {
      const auto slept = delayed.slept();
      steps.push_back(elapsed([&] { run.step(); }).wall);
      waits.push_back(std::chrono::duration<double>(delayed.slept() - slept).count());
      if (i > 0) continue;
      order += fmt::format("prefetch {}, forward and backward of a step, rank 0:\n{}\n", prefetch,
                           logged.text());
    }
    report.row(fmt::format("prefetch {}: one step", prefetch), summarise(steps), 1e3, "ms");
    report.row("  of it waiting for the delay", summarise(waits), 1e3, "ms");
    report.exact("  collectives, without anything behind them",
                 static_cast<double>(logged.calls()) / 9 * static_cast<double>(kDelay.count()),
                 "ms");
    world.barrier().wait();
  }
  if (world.rank() == 0) {
    report.print();
    fmt::print("{}", order);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string_view part = argc > 1 ? argv[1] : "";
  const auto number = [&](int place, int otherwise) {
    return argc > place ? std::atoi(argv[place]) : otherwise;
  };
  if (part == "overlap") return engine::zero::launch(argc, argv, 2, overlap);
  if (part != "small" && part != "large") {
    std::fputs("shard_bench: expected small|large [RANKS [PAIRS [STAGE]]] or overlap\n", stderr);
    return 2;
  }
  const Shape& shape = part == "small" ? kGpt10M : kGpt124M;
  const int pairs = number(3, static_cast<int>(shape.sharded_pairs));
  const Wanted wanted{shape, static_cast<std::size_t>(std::max(1, pairs)), number(4, -1)};
  return engine::zero::launch(argc, argv, number(2, 2),
                              [&](Communicator& world) { return duels(world, wanted); });
}
