// The schedule against 5,000 random runs: random stages, depths and traits, blocks nested or repeated,
// branches that change from pass to pass, evaluations, checkpointed reruns, unused parameters.
#include "plimsoll/shard/schedule.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/property/dice.hpp"

namespace plimsoll::test {
namespace {

using shard::Action;
using shard::ActionKind;
using shard::Pass;
using shard::Schedule;
using shard::ScheduleOptions;
using shard::Stage;
using shard::UnitIndex;
using shard::UnitTraits;

constexpr int kSchedules = 5000;

// Carries actions out as an engine would, and complains about the first that makes no sense.
class Model {
 public:
  Model(const std::vector<UnitTraits>& units, const ScheduleOptions& options)
      : units_(units), options_(options), storage_(units.size()), reduced_(units.size(), 0) {}

  void carry_out(shard::Actions actions) {
    for (const Action& a : actions) carry_out(a);
    const std::int32_t in_use = count_in_use();
    if (blocks_ > std::max(1 + options_.prefetch, in_use)) {
      complain(fmt::format("{} blocks gathered, {} in use", blocks_, in_use));
    }
    most_ = std::max(most_, blocks_);
  }

  void use(UnitIndex u) {
    if (options_.stage != Stage::kParameters || units_[at(u)].empty) return;
    if (storage_[at(u)] != kReady) complain(fmt::format("unit {} is used while not gathered", u));
    wanted_[at(u)] = true;
  }
  void done(UnitIndex u) { wanted_[at(u)] = false; }
  void begin_backward() { reduced_.assign(units_.size(), 0); }

  void expect_reduced(bool each) {
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const int expected = each && units_[u].has_trainable ? 1 : 0;
      if (reduced_[u] != expected)
        complain(fmt::format("unit {} reduced {} times", u, reduced_[u]));
    }
    if (in_flight_ >= 0) complain("a reduction is left in flight");
  }
  void expect_nothing_gathered() {
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (storage_[u] != kNone) complain(fmt::format("unit {} is left gathered", u));
    }
  }

  const std::string& problem() const { return problem_; }
  std::int32_t most() const { return most_; }
  int gathers = 0;

 private:
  enum Storage { kNone, kComing, kReady };
  static std::size_t at(UnitIndex u) { return static_cast<std::size_t>(u); }

  void complain(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }
  void move(UnitIndex u, Storage from, Storage to) {
    if (storage_[at(u)] != from) complain(fmt::format("unit {}: illegal transition", u));
    storage_[at(u)] = to;
  }

  void carry_out(const Action& a) {
    const bool root = units_[at(a.unit)].root;
    switch (a.kind) {
      case ActionKind::kGather:
        if (units_[at(a.unit)].empty) complain("an empty unit is gathered");
        move(a.unit, kNone, kComing);
        if (!root) ++blocks_;
        ++gathers;
        break;
      case ActionKind::kWait:
        move(a.unit, kComing, kReady);
        break;
      case ActionKind::kRelease:
        move(a.unit, kReady, kNone);
        if (wanted_[at(a.unit)]) complain(fmt::format("unit {} is released in use", a.unit));
        if (!root) --blocks_;
        break;
      case ActionKind::kReduce:
        if (in_flight_ >= 0) complain("two reductions in flight");
        in_flight_ = a.unit;
        ++reduced_[at(a.unit)];
        break;
      case ActionKind::kFinishReduce:
        if (in_flight_ != a.unit) complain("the end of a reduction that is not in flight");
        in_flight_ = -1;
        break;
      case ActionKind::kUpdate:
        break;
    }
  }

  // Blocks that are there and not on their way: an engine cannot do with fewer.
  std::int32_t count_in_use() const {
    std::int32_t count = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      count += !units_[u].root && storage_[u] == kReady ? 1 : 0;
    }
    return count;
  }

  const std::vector<UnitTraits>& units_;
  const ScheduleOptions& options_;
  std::vector<Storage> storage_;
  std::vector<int> reduced_;
  std::vector<bool> wanted_ = std::vector<bool>(units_.size(), false);
  UnitIndex in_flight_ = -1;
  std::int32_t blocks_ = 0;
  std::int32_t most_ = 0;
  std::string problem_;
};

// A run of a model: which blocks are called, in which nesting.
struct Call {
  UnitIndex unit = 0;
  std::vector<Call> inside;
};

class Run {
 public:
  Run(Dice& dice, std::vector<UnitTraits> units, ScheduleOptions options, bool known)
      : dice_(dice),
        units_(std::move(units)),
        options_(options),
        model_(units_, options_),
        schedule_(units_, options_, known ? std::optional(blocks()) : std::nullopt) {}

  std::vector<UnitIndex> blocks() const {
    std::vector<UnitIndex> result;
    for (UnitIndex u = 0; u + 1 < static_cast<UnitIndex>(units_.size()); ++u) result.push_back(u);
    return result;
  }
  UnitIndex root() const { return static_cast<UnitIndex>(units_.size()) - 1; }

  // The blocks in a row; with `wild` some are left out, swapped, repeated or nested.
  std::vector<Call> calls(bool wild) {
    std::vector<Call> result;
    for (UnitIndex u : blocks()) {
      if (wild && dice_.one_in(6)) continue;
      Call call{u, {}};
      if (wild && dice_.one_in(6) && !result.empty() && result.back().unit != u) {
        result.back().inside.push_back(call);
        continue;
      }
      result.push_back(call);
      if (wild && dice_.one_in(8)) result.push_back(call);
    }
    if (wild && result.size() > 1 && dice_.one_in(4)) std::swap(result.front(), result.back());
    return result;
  }

  void forward(const std::vector<Call>& calls, Pass pass) {
    model_.carry_out(schedule_.forward_begins(root(), pass));
    model_.use(root());
    for (const Call& call : calls) forward(call, pass);
    model_.done(root());
    model_.carry_out(schedule_.forward_ends(root()));
    if (pass == Pass::kEvaluation) model_.expect_nothing_gathered();
  }

  void backward(const std::vector<Call>& calls, bool reduces) {
    model_.begin_backward();
    count_uses(calls);
    model_.carry_out(schedule_.backward_begins(root()));
    model_.use(root());
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) backward(*call);
    model_.done(root());
    if (units_.back().has_trainable && (!unused_parameters || dice_.coin())) {
      model_.carry_out(schedule_.gradients_complete(root()));
    }
    model_.carry_out(schedule_.backward_ends());
    model_.expect_nothing_gathered();
    model_.expect_reduced(reduces);
  }

  void update() {
    for (UnitIndex u = 0; u <= root(); ++u) model_.carry_out(schedule_.updated(u));
  }

  bool unused_parameters = true;  // some units get no gradient for some parameter
  Model& model() { return model_; }
  Schedule& schedule() { return schedule_; }

 private:
  void forward(const Call& call, Pass pass) {
    model_.carry_out(schedule_.forward_begins(call.unit, pass));
    model_.use(call.unit);
    for (const Call& inner : call.inside) forward(inner, pass);
    model_.use(call.unit);
    model_.done(call.unit);
    model_.carry_out(schedule_.forward_ends(call.unit));
  }

  void count_uses(const std::vector<Call>& calls) {
    last_uses_.assign(units_.size(), 0);
    for (const Call& call : calls) count_uses(call);
  }
  void count_uses(const Call& call) {
    ++last_uses_[static_cast<std::size_t>(call.unit)];
    for (const Call& inner : call.inside) count_uses(inner);
  }

  // A checkpoint reruns the block before its own nodes run.
  void backward(const Call& call) {
    const auto u = static_cast<std::size_t>(call.unit);
    model_.carry_out(schedule_.backward_begins(call.unit));
    model_.use(call.unit);
    if (dice_.one_in(3)) forward(call, Pass::kTraining);
    model_.use(call.unit);
    for (auto inner = call.inside.rbegin(); inner != call.inside.rend(); ++inner) backward(*inner);
    model_.done(call.unit);
    if (--last_uses_[u] > 0) return;  // its gradients wait for the other use
    const bool unused_parameter = unused_parameters && dice_.one_in(10);
    if (units_[u].has_trainable && !unused_parameter) {
      model_.carry_out(schedule_.gradients_complete(call.unit));
    }
    if (dice_.coin()) model_.carry_out(schedule_.backward_passed(call.unit));
  }

  Dice& dice_;
  std::vector<UnitTraits> units_;
  ScheduleOptions options_;
  Model model_;
  Schedule schedule_;
  std::vector<int> last_uses_;
};

std::vector<UnitTraits> random_units(Dice& dice) {
  std::vector<UnitTraits> units(static_cast<std::size_t>(dice.between(1, 9)));
  units.back().root = true;
  for (UnitTraits& unit : units) {
    if (dice.one_in(8)) {
      unit.empty = true;
      unit.has_trainable = false;
    } else if (dice.one_in(5)) {
      unit.has_frozen = true;
      unit.has_trainable = dice.coin();
    }
  }
  return units;
}

ScheduleOptions random_options(Dice& dice) {
  ScheduleOptions options;
  options.stage = dice.pick<Stage>({Stage::kNothing, Stage::kOptimizer, Stage::kGradients,
                                    Stage::kParameters, Stage::kParameters, Stage::kParameters});
  options.ranks = static_cast<std::int32_t>(dice.between(1, 4));
  options.prefetch = static_cast<std::int32_t>(dice.between(0, 3));
  options.reshard_root = dice.coin();
  options.reduce_each = dice.coin();
  return options;
}

}  // namespace

TEST_CASE("5,000 runs: gathered before use, within the bound, released, each unit reduced once") {
  Dice dice(20260315);
  for (int i = 0; i < kSchedules; ++i) {
    const ScheduleOptions options = random_options(dice);
    const bool wild = dice.coin();
    Run run(dice, random_units(dice), options, dice.coin());
    CAPTURE(i);
    const bool any = options.stage != Stage::kNothing || options.ranks > 1;
    for (std::int64_t step = dice.between(1, 4); step > 0; --step) {
      if (dice.one_in(4)) run.forward(run.calls(wild), Pass::kEvaluation);
      const auto micro_batches = static_cast<std::int32_t>(dice.between(1, 3));
      for (std::int32_t m = 0; m < micro_batches; ++m) {
        const bool last = m + 1 == micro_batches;
        run.schedule().begin_micro_batch(last);
        const std::vector<Call> calls = run.calls(wild);
        run.forward(calls, Pass::kTraining);
        run.backward(calls, any && (options.reduce_each || last));
      }
      run.update();
    }
    CHECK(run.model().problem() == "");
  }
}

TEST_CASE(
    "5,000 runs of blocks in a row: two gathers a block, one of the root, whatever is ahead") {
  Dice dice(20260316);
  for (int i = 0; i < kSchedules; ++i) {
    CAPTURE(i);
    ScheduleOptions options = random_options(dice);
    options.stage = Stage::kParameters;
    std::vector<UnitTraits> units(static_cast<std::size_t>(dice.between(1, 9)));
    units.back().root = true;
    Run run(dice, units, options, dice.coin());
    run.unused_parameters = false;
    const auto blocks = static_cast<int>(units.size()) - 1;
    constexpr int kSteps = 3;
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<Call> calls = run.calls(false);
      run.forward(calls, Pass::kTraining);
      run.backward(calls, true);
      run.update();
    }
    CHECK(run.model().problem() == "");
    CHECK(run.model().most() <= 1 + options.prefetch);
    CHECK(run.model().most() + 1 <= run.schedule().bound());
    CHECK(run.model().gathers == kSteps * (2 * blocks + (options.reshard_root ? 2 : 1)));
  }
}

}  // namespace plimsoll::test
