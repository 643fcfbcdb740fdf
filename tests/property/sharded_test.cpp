// What holds for every sharded calculated run: 500 random jobs at every stage.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "plimsoll/plan/ledger.hpp"
#include "plimsoll/plan/network_units.hpp"
#include "plimsoll/plan/plan.hpp"
#include "plimsoll/plan/walk.hpp"

#include "tests/property/audit.hpp"
#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

using shard::Stage;
using timeline::Phase;
using timeline::Tag;

constexpr int kShardedJobs = 500;
constexpr Stage kStages[] = {Stage::kNothing, Stage::kOptimizer, Stage::kGradients,
                             Stage::kParameters};

// Calls `check` with random jobs whose optimizer is plimsoll's, at random ranks and options.
template <class Check>
void for_each_sharded_job(Check&& check) {
  Dice dice(20260401);
  for_each_random_job(kShardedJobs, [&](const RandomJob& random) {
    RandomJob job = random;
    job.job.optimizer_impl = plan::OptimizerImpl::kPlimsoll;
    job.job.ranks = static_cast<std::int32_t>(dice.between(1, 5));
    job.job.prefetch = static_cast<std::int32_t>(dice.between(0, 3));
    job.job.reshard_root = dice.coin() && job.job.loss_chunks == 1;  // chunks read the head late
    job.job.reduce_each = dice.coin();
    job.job.snapshot = dice.one_in(4);
    CAPTURE(job.job.ranks);
    CAPTURE(job.job.reduce_each);
    check(job);
  });
}

plan::Job at_stage(const plan::Job& job, Stage stage) {
  plan::Job result = job;
  result.stage = stage;
  return result;
}

plan::WalkOptions two_steps() {
  plan::WalkOptions options;
  options.keep_ledger = true;
  return options;
}

std::int64_t of(const timeline::BytesByTag& bytes, Tag tag) {
  return bytes[static_cast<std::size_t>(tag)];
}

// Follows gathered units: how many at once, and whether an operation that reads a layer's parameter
// ever allocates, forward or backward, while the layer is not gathered.
class GatherWatch final : public timeline::Sink {
 public:
  GatherWatch(const network::Network& network, std::int32_t ranks)
      : units_(plan::units_of(network, ranks)) {
    first_unit_ = plan::operation_id(network.operations.size() + network.parameters.size());
    std::map<network::ValueId, std::int32_t> layer_of;
    for (const network::Parameter& p : network.parameters) layer_of[p.value] = p.unit;
    for (const network::Operation& op : network.operations) {
      std::int32_t layer = -1;
      // A composite of several nodes, of which only the last of forward reads the weight.
      const bool composite = op.kind == network::OpKind::kRmsNorm;
      for (network::ValueId v : op.inputs) {
        if (!composite && layer_of.count(v) > 0) layer = std::max(layer, layer_of[v]);
      }
      reads_.push_back(layer);
    }
  }

  void begin_phase(timeline::PhaseKey key) override { phase_ = key.phase; }
  void end_phase() override {
    if (phase_ == Phase::kReduce || phase_ == Phase::kOptimizer) {
      if (!gathered_.empty()) complain("a unit is gathered outside forward and backward");
    }
  }
  void allocate(timeline::BlockId block, std::int64_t bytes, Tag tag,
                timeline::OperationId operation) override {
    // Checkpointing keeps the generator's state before its region's first operation begins.
    constexpr std::int64_t kGeneratorState = 5056;  // bytes
    if (bytes == kGeneratorState) return;
    if (tag == Tag::kGathered) {
      const auto unit = static_cast<std::size_t>(operation - first_unit_);
      gathered_[block] = unit;
      std::int32_t blocks = 0;
      for (const auto& [id, u] : gathered_) blocks += u == units_.units.root() ? 0 : 1;
      most_ = std::max(most_, blocks);
      return;
    }
    require(operation);
  }
  void release(timeline::BlockId block, std::int64_t, Tag tag, timeline::OperationId) override {
    if (tag == Tag::kGathered) gathered_.erase(block);
  }
  void retag(timeline::BlockId, std::int64_t, Tag, Tag) override {}

  const std::string& problem() const { return problem_; }
  std::int32_t most() const { return most_; }

 private:
  void complain(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }
  void require(timeline::OperationId operation) {
    if (operation == 0 || operation > reads_.size()) return;
    const std::int32_t layer = reads_[operation - 1];
    if (layer < 0) return;
    for (const auto& [block, unit] : gathered_) {
      if (unit == static_cast<std::size_t>(layer)) return;
    }
    complain(
        fmt::format("operation {} allocates while layer {} is not gathered", operation, layer));
  }

  plan::NetworkUnits units_;
  std::vector<std::int32_t> reads_;  // by operation: the layer whose parameter it reads, or -1
  timeline::OperationId first_unit_ = 0;
  std::unordered_map<timeline::BlockId, std::size_t> gathered_;
  Phase phase_ = Phase::kModel;
  std::int32_t most_ = 0;
  std::string problem_;
};

// Bytes by tag when the last step's optimizer begins.
class AtOptimizer final : public timeline::Sink {
 public:
  void begin_phase(timeline::PhaseKey key) override {
    peak.begin_phase(key);
    if (key.phase == Phase::kOptimizer) alive = peak.alive();
  }
  void end_phase() override { peak.end_phase(); }
  void allocate(timeline::BlockId b, std::int64_t n, Tag t, timeline::OperationId o) override {
    peak.allocate(b, n, t, o);
  }
  void release(timeline::BlockId b, std::int64_t n, Tag t, timeline::OperationId o) override {
    peak.release(b, n, t, o);
  }
  void retag(timeline::BlockId b, std::int64_t n, Tag from, Tag to) override {
    peak.retag(b, n, from, to);
  }

  timeline::PeakSink peak;
  timeline::BytesByTag alive{};
};

std::int64_t state(const timeline::BytesByTag& alive) {
  return of(alive, Tag::kParameters) + of(alive, Tag::kMasterCopy) + of(alive, Tag::kGradients) +
         of(alive, Tag::kOptimizer);
}

// What padding and the 64-byte places can add to any stage's state.
std::int64_t padding_allowance(const plan::NetworkUnits& units, const shard::Arithmetic& a) {
  std::int64_t total = 0;
  for (const shard::UnitLayout& unit : units.layouts) {
    std::int64_t exact = 0;
    for (const shard::Group& group : unit.groups()) {
      exact += group.flat().elements() * group.type().bytes;
      const std::int64_t each =
          group.type().bytes + a.master + a.sum + a.sum + a.moments * a.moment;
      total += group.partition().padding() * each;
    }
    total += unit.storage_bytes() - exact;
  }
  return total;
}

}  // namespace

TEST_CASE(
    "500 jobs, every stage: blocks are released once with their bytes, tags sum, nothing left") {
  for_each_sharded_job([](const RandomJob& random) {
    const network::Network network = random.network();
    for (Stage stage : kStages) {
      CAPTURE(static_cast<int>(stage));
      Audit audit;
      const plan::WalkResult result =
          plan::walk(network, at_stage(random.job, stage), two_steps(), audit);
      CHECK(audit.problem() == "");
      CHECK(audit.blocks_alive() == 0);
      CHECK(result.tensors_leaked == 0);
    }
  });
}

TEST_CASE(
    "500 jobs at stage 3: every layer is gathered when it works, within the bound, and released") {
  for_each_sharded_job([](const RandomJob& random) {
    const network::Network network = random.network();
    GatherWatch watch(network, random.job.ranks);
    plan::walk(network, at_stage(random.job, Stage::kParameters), two_steps(), watch);
    CHECK(watch.problem() == "");
    CHECK(watch.most() <= 1 + random.job.prefetch);
  });
}

TEST_CASE("500 jobs, every stage: the state that the optimizer sees is shard::resident's") {
  for_each_sharded_job([](const RandomJob& random) {
    const network::Network network = random.network();
    const plan::NetworkUnits units = plan::units_of(network, random.job.ranks);
    for (Stage stage : kStages) {
      CAPTURE(static_cast<int>(stage));
      const plan::Job job = at_stage(random.job, stage);
      AtOptimizer sink;
      plan::walk(network, job, two_steps(), sink);
      const shard::Resident held = shard::resident(units.layouts, stage, job.arithmetic());
      CHECK(of(sink.alive, Tag::kParameters) == held.parameters);
      CHECK(of(sink.alive, Tag::kMasterCopy) == held.masters);
      CHECK(of(sink.alive, Tag::kGradients) == held.gradients);
      // The loss scaler is one for the whole model, on every rank.
      const std::int64_t scaler = job.recipe().loss_scaler ? plan::kLossScalerBytes : 0;
      CHECK(of(sink.alive, Tag::kOptimizer) == held.moments + scaler);
      CHECK(of(sink.alive, Tag::kReduce) == 0);
      CHECK(of(sink.alive, Tag::kGathered) == 0);
    }
  });
}

TEST_CASE(
    "500 jobs, R >= 2: a stage never holds more model state than the one before, padding apart") {
  for_each_sharded_job([](const RandomJob& random) {
    if (random.job.ranks < 2) return;
    const network::Network network = random.network();
    const plan::NetworkUnits units = plan::units_of(network, random.job.ranks);
    const std::int64_t allowance = padding_allowance(units, random.job.arithmetic());
    std::int64_t before = 0;
    for (Stage stage : kStages) {
      CAPTURE(static_cast<int>(stage));
      AtOptimizer sink;
      plan::walk(network, at_stage(random.job, stage), two_steps(), sink);
      const std::int64_t held = state(sink.alive);
      if (stage != Stage::kNothing) CHECK(held <= before + allowance);
      before = held;
    }
  });
}

TEST_CASE("500 jobs: sharding does not touch activations nor FLOPs") {
  for_each_sharded_job([](const RandomJob& random) {
    const network::Network network = random.network();
    plan::Job alone = random.job;
    alone.ranks = 1;
    timeline::PeakSink sink;
    const plan::WalkResult whole = plan::walk(network, alone, two_steps(), sink);
    const plan::Ledger expected = plan::count_ledger(whole.ledger);
    for (Stage stage : kStages) {
      CAPTURE(static_cast<int>(stage));
      timeline::PeakSink sharded;
      const plan::WalkResult result =
          plan::walk(network, at_stage(random.job, stage), two_steps(), sharded);
      const plan::Ledger ledger = plan::count_ledger(result.ledger);
      CHECK(ledger.distinct.bytes == expected.distinct.bytes);
      CHECK(ledger.distinct.count == expected.distinct.count);
      CHECK(ledger.as_saved.bytes == expected.as_saved.bytes);
      CHECK(ledger.without_parameters.bytes == expected.without_parameters.bytes);
      CHECK(result.flops.backward.total_full() == whole.flops.backward.total_full());
      CHECK(result.flops.recompute.total_full() == whole.flops.recompute.total_full());
    }
  });
}

TEST_CASE(
    "500 jobs: traffic is 2 Psi and 3 Psi - Psi_root by (R-1)/R, padding apart, by micro-batch") {
  for_each_sharded_job([](const RandomJob& random) {
    const network::Network network = random.network();
    const plan::NetworkUnits units = plan::units_of(network, random.job.ranks);
    const std::int64_t others = random.job.ranks - 1;
    const shard::Arithmetic a = random.job.arithmetic();
    std::int64_t slots = 0;       // elements of all units' slots
    std::int64_t learning = 0;    // of those that get gradients
    std::int64_t root_slots = 0;  // and of the root's
    std::int64_t item = 0;
    for (std::size_t u = 0; u < units.layouts.size(); ++u) {
      for (const shard::Group& group : units.layouts[u].groups()) {
        slots += group.partition().chunk();
        if (group.trainable()) learning += group.partition().chunk();
        if (u == units.units.root()) root_slots += group.partition().chunk();
        item = group.type().bytes;
      }
    }
    const std::int64_t travel = a.local_sums ? a.sum : item;
    const std::int64_t passes = random.job.accumulate;
    const std::int64_t reduced = random.job.reduce_each ? passes : 1;
    for (Stage stage : kStages) {
      CAPTURE(static_cast<int>(stage));
      timeline::PeakSink sink;
      const plan::WalkResult result =
          plan::walk(network, at_stage(random.job, stage), two_steps(), sink);
      const bool full = stage == Stage::kOptimizer || stage == Stage::kGradients;
      const std::int64_t sums = stage == Stage::kNothing ? a.sum : 0;
      CHECK(result.traffic.reductions.bytes == reduced * others * learning * (travel + sums));
      CHECK(result.traffic.updates.bytes == (full ? others * learning * item : 0));
      // Units below all that learns are not gathered again for backward.
      if (random.job.adapts()) continue;
      const std::int64_t root_gathers = random.job.reshard_root ? 2 : 1;
      const std::int64_t gathers = 2 * (slots - root_slots) + root_gathers * root_slots;
      CHECK(result.traffic.gathers.bytes ==
            (stage == Stage::kParameters ? passes * others * gathers * item : 0));
    }
  });
}

}  // namespace plimsoll::test
