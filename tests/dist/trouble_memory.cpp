// Bytes: what a plan says beside what is measured, and what construction and long runs need.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "plimsoll/engine/data/rows.hpp"
#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/engine/library/parameter_storage.hpp"
#include "plimsoll/engine/run/recorded_run.hpp"
#include "plimsoll/network/families/families.hpp"
#include "plimsoll/plan/network_units.hpp"
#include "plimsoll/plan/walk.hpp"
#include "plimsoll/timeline/comparison.hpp"

#include "tests/dist/tag_peaks.hpp"
#include "tests/dist/trouble.hpp"

namespace plimsoll::tests {
namespace {

using timeline::Phase;
using timeline::Tag;

network::NetworkSpec small_gpt() {
  network::NetworkSpec spec;
  spec.family = network::Family::kMiniGpt;
  spec.architecture = network::gpt_architecture();
  spec.width = 12;
  spec.layers = 3;
  spec.heads = spec.kv_heads = 3;
  spec.head_dim = 4;
  spec.feed_forward = 48;
  spec.vocabulary = 61;
  spec.positions = 8;
  return spec;
}

plan::Job small_job(Communicator& world, int stage) {
  plan::Job job;
  job.batch = 2;
  job.sequence = 8;
  job.ranks = world.size();
  job.stage = static_cast<Stage>(stage);
  return job;
}

// Calculated and measured figures of every phase of two steps; equal, or the trouble is here.
std::vector<timeline::PhaseFigures> agreed_figures(Communicator& world, const plan::Job& job,
                                                   const std::string& what) {
  const network::Network net = network::build_network(small_gpt(), job.build_options());
  const timeline::Timeline calculated = plan::walk_timeline(net, job, {});
  engine::RecordOptions options;
  options.world = &world;
  const timeline::Timeline measured = engine::record_run(net, job, options);
  const auto difference = timeline::first_difference(
      timeline::comparable(calculated), timeline::comparable(measured), timeline::Depth::kEvents);
  require(!difference, what + ": " + (difference ? timeline::to_text(*difference) : ""));
  return timeline::phase_figures(measured);
}

std::int64_t highest(const std::vector<timeline::PhaseFigures>& phases) {
  std::int64_t peak = 0;
  for (const timeline::PhaseFigures& phase : phases) peak = std::max(peak, phase.peak);
  return peak;
}

void planned_and_measured(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    for (auto precision : {plan::Precision::kFp32, plan::Precision::kMixed}) {
      plan::Job job = small_job(world, stage);
      job.precision = precision;
      agreed_figures(world, job, fmt::format("stage {}", stage));
    }
  }
}

// Sums of four micro-batches: in full on every rank, or each rank its own.
void unsynchronised(Communicator& world) {
  if (world.size() == 1) return;
  for (int stage : {2, 3}) {
    plan::Job job = small_job(world, stage);
    job.accumulate = 4;
    const std::int64_t each = highest(agreed_figures(world, job, "each"));
    job.reduce_each = false;
    const std::int64_t once = highest(agreed_figures(world, job, "once"));
    require(once > each, fmt::format("stage {}: full gradients cost nothing", stage));
  }
}

// Embedding and head are one unit, whose reduce buffer is the largest.
void largest_reduction(Communicator& world) {
  plan::Job job = small_job(world, 2);
  const network::Network net = network::build_network(small_gpt(), job.build_options());
  std::int64_t buffer = 0;
  const plan::NetworkUnits units = plan::units_of(net, world.size());
  for (const shard::UnitLayout& unit : units.layouts) {
    for (const shard::Group& group : unit.groups()) {
      buffer = std::max(buffer, group.partition().padded() * group.type().bytes);
    }
  }
  const TagPeaks peaks;
  engine::RecordOptions options;
  options.world = &world;
  engine::record_run(net, job, options);
  require(peaks.of(Tag::kReduce) == buffer,
          fmt::format("{} bytes of reduce buffers, expected {}", peaks.of(Tag::kReduce), buffer));
}

// --- construction ---------------------------------------------------------------------------------

void construction(Communicator& world) {
  TinyShape shape;
  shape.width = 32;
  shape.layers = 6;
  for (bool mixed : {false, true}) {
    ZeroSettings settings;
    if (mixed) {
      settings.compute = at::kBFloat16;
      settings.master = at::kFloat;
    }
    TinyModel model = on_meta([&] { return TinyModel(shape); });
    std::vector<at::Tensor> kept;  // meta tensors count, too: none goes meanwhile
    std::int64_t parameter = 0;
    for (const at::Tensor& p : model->parameters()) {
      kept.push_back(p.detach());
      parameter = std::max(parameter, p.numel() * 4);
    }
    kept.push_back(model->offset.detach());
    const std::int64_t before = engine::total(engine::live_bytes());
    const TagPeaks peaks;
    ShardedModule sharded(model, world, settings);
    for (std::size_t i = 0; i < model->blocks.size(); ++i) {
      model->calls[i] = sharded.wrap(model->blocks[i]);
    }
    sharded.initialise([](const std::string&, at::Tensor t) { t.fill_(0.5); });
    const std::int64_t shards = engine::total(engine::live_bytes()) - before;
    std::int64_t unit = 0;
    const zero::Sharder& sharder = sharded.sharder();
    for (shard::UnitIndex u = 0; u < sharder.unit_count(); ++u) {
      unit = std::max(unit, sharder.unit(u).layout().storage_bytes());
    }
    const std::int64_t bound = shards + unit + (mixed ? parameter : 0);
    require(peaks.total() <= bound,
            fmt::format("{} bytes at construction, expected at most {}", peaks.total(), bound));
  }
}

void buffers(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    TinyModel model((TinyShape()));
    model->offset.fill_(world.rank() + 1);
    ShardedModule sharded(model, world, at_stage(stage));
    sharded.initialise();
    require(at::equal(model->offset, at::ones({5})), "a buffer is not that of rank 0");
  }
  torch::nn::BatchNorm1d empty = on_meta([] { return torch::nn::BatchNorm1d(3); });
  for (const at::Tensor& p : empty->parameters()) {
    engine::place_parameter(p, at::zeros({3}).storage(), 0, at::kFloat);
  }
  ShardedModule sharded(empty, world);
  require_refused([&] { sharded.initialise(); }, {"buffer 'running_mean'", "expected values"});
}

// --- rows and steps -------------------------------------------------------------------------------

// Over two epochs of 23 rows: no rank reads another's row, every row is read, in another order.
void rows_of_ranks(Communicator& world) {
  const engine::RowOrder order{23, 5, world.size(), 2, 3};
  std::vector<std::int64_t> read;
  for (std::int64_t step = 0; std::ssize(read) < 46; ++step) {
    for (std::int64_t m = 0; m < 2; ++m) {
      for (std::int64_t rank = 0; rank < world.size(); ++rank) {
        for (std::int64_t b = 0; b < 3; ++b)
          read.push_back(order.row(step * order.rows_per_step(), m, rank, b));
      }
    }
  }
  const auto epoch = [&](int i) {
    return std::vector(read.begin() + 23 * i, read.begin() + 23 * (i + 1));
  };
  for (int i = 0; i < 2; ++i) {
    const auto one = epoch(i);
    require(std::set<std::int64_t>(one.begin(), one.end()).size() == 23, "a row twice in an epoch");
  }
  require(epoch(0) != epoch(1), "the same order in every epoch");
}

void flat_steps(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    ShardedTiny tiny(world, at_stage(stage));
    ShardOptimizer optimizer(tiny.sharded.sharder(), Optimizer::kAdamW, {});
    std::int64_t first = 0;
    for (int step = 0; step < 200; ++step) {
      tiny.run(world.rank()).backward();
      optimizer.step({});
      tiny.sharded.zero_grad();
      const std::int64_t now = engine::total(engine::live_bytes());
      if (step == 0) first = now;
      require(now == first, fmt::format("stage {}: {} bytes after step {}, {} after the first",
                                        stage, now, step, first));
    }
  }
}

}  // namespace

std::vector<Trouble> memory_troubles() {
  return {
      {"trouble 40: every event of a step is planned, at every stage", planned_and_measured},
      {"trouble 43: sums of unsynchronised micro-batches are planned and measured", unsynchronised},
      {"trouble 44: the largest unit's reduce buffer is an item of the plan", largest_reduction},
      {"trouble 46: construction holds one unit above the shards", construction},
      {"trouble 47: buffers are those of rank 0, and never without values", buffers},
      {"trouble 48: ranks read disjoint rows, all of them, in a new order each epoch",
       rows_of_ranks},
      {"200 steps end with the bytes of the first", flat_steps},
  };
}

}  // namespace plimsoll::tests
