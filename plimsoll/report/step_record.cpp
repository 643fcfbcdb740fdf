#include "plimsoll/report/step_record.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/plan/walk.hpp"
#include "plimsoll/report/plan_figures.hpp"

namespace plimsoll::report {
namespace {

using timeline::BlockId;
using timeline::OperationId;
using timeline::Phase;
using timeline::PhaseKey;
using timeline::Tag;

struct Block {
  BlockId id = 0;
  std::int64_t bytes = 0;
  Tag tag = Tag::kParameters;
  OperationId operation = 0;
  Phase phase = Phase::kModel;
};

// Counts the events of the shown phases, and remembers the blocks at the peak of a step.
class Survey final : public timeline::Sink {
 public:
  Survey(std::vector<PhaseKey> shown, const timeline::Peak& peak)
      : counter_(std::move(shown), INT64_MAX), peak_(peak) {}

  void begin_phase(PhaseKey key) override {
    counter_.begin_phase(key);
    phase_ = key.phase;
    in_step_ = key.step == peak_.phase.step;
    look();
  }
  void end_phase() override {
    counter_.end_phase();
    in_step_ = false;
  }
  void allocate(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) override {
    counter_.allocate(block, bytes, tag, operation);
    blocks_[block] = {block, bytes, tag, operation, phase_};
    current_ += bytes;
    look();
  }
  void release(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) override {
    counter_.release(block, bytes, tag, operation);
    blocks_.erase(block);
    current_ -= bytes;
  }
  void retag(BlockId block, std::int64_t bytes, Tag from, Tag to) override {
    counter_.retag(block, bytes, from, to);
    blocks_[block].tag = to;
  }

  std::int64_t events() const { return counter_.curve().events; }

  // The largest blocks, equal ones in the order in which they were allocated.
  std::vector<Block> largest(std::size_t most) const {
    std::vector<Block> blocks = at_peak_;
    const auto before = [](const Block& a, const Block& b) {
      return std::pair(b.bytes, a.id) < std::pair(a.bytes, b.id);
    };
    std::sort(blocks.begin(), blocks.end(), before);
    blocks.resize(std::min(blocks.size(), most));
    return blocks;
  }

 private:
  // The first instant with the bytes of the peak is the peak.
  void look() {
    if (!in_step_ || !at_peak_.empty() || current_ != peak_.bytes) return;
    for (const auto& [id, block] : blocks_) at_peak_.push_back(block);
  }

  timeline::CurveSink counter_;
  const timeline::Peak& peak_;
  std::unordered_map<BlockId, Block> blocks_;
  std::int64_t current_ = 0;
  Phase phase_ = Phase::kModel;
  bool in_step_ = false;
  std::vector<Block> at_peak_;
};

std::string name_of(const PhaseRun& run, const plan::Plan& plan) {
  const PhaseKey& key = run.figures.key;
  std::string text(timeline::name(key.phase));
  const bool repeats =
      key.phase != Phase::kZeroGrad && key.phase != Phase::kClip && key.phase != Phase::kOptimizer;
  if (plan.job.accumulate == 1 || !repeats) return text;
  return text +
         fmt::format(", micro-batch{} {}", run.first == run.last ? "" : "es", micro_batches(run));
}

// Each bucket of the curve keeps two instants.
std::int64_t bucket_width(std::int64_t events, std::int64_t most_points) {
  if (events <= most_points) return 1;
  const std::int64_t buckets = std::max<std::int64_t>(most_points / 2, 1);
  return (events + buckets - 1) / buckets;
}

}  // namespace

ShownPhases shown_phases(const plan::Plan& plan, ShownStep shown) {
  ShownPhases phases;
  if (shown == ShownStep::kFirst) {
    phases.keys.push_back({Phase::kModel, 0, 0});
    phases.names.emplace_back(timeline::name(Phase::kModel));
  }
  for (const PhaseRun& run : phase_runs(step_of(plan, shown).phases)) {
    phases.keys.push_back(run.figures.key);
    phases.names.push_back(name_of(run, plan));
  }
  return phases;
}

StepRecord record_step(const plan::Plan& plan, ShownStep shown, std::int64_t most_points) {
  const network::Network network = network::build_network(plan.spec, plan.job.build_options());
  StepRecord record;
  record.shown = shown;
  record.phases = shown_phases(plan, shown);
  record.operations = plan::operation_names(network);
  Survey survey(record.phases.keys, step_of(plan, shown).peak);
  plan::walk(network, plan.job, {}, survey);
  timeline::CurveSink curve(record.phases.keys, bucket_width(survey.events(), most_points));
  plan::walk(network, plan.job, {}, curve);
  record.curve = curve.curve();
  for (const Block& block : survey.largest(kLargestTensors)) {
    record.largest.push_back({block.bytes, block.tag, block.phase,
                              made_by(record.operations.at(block.operation), block.phase)});
  }
  return record;
}

std::string made_by(const std::string& operation, Phase phase) {
  constexpr std::string_view kOptimizer = "optimizer ";
  const bool parameter = phase == Phase::kModel && operation.starts_with(kOptimizer);
  return parameter ? operation.substr(kOptimizer.size()) : operation;
}

}  // namespace plimsoll::report
