// The schedule on examples small enough to read: three blocks and the root.
#include "plimsoll/shard/schedule.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/base/error.hpp"

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

constexpr UnitIndex kRoot = 3;

// "+1" gather, "=1" wait, "-1" release, "R1" reduce, "r1" finish, "U1" update; the root is "*".
std::string text(shard::Actions actions) {
  std::string result;
  for (const Action& a : actions) {
    constexpr const char* kNames[] = {"+", "=", "-", "R", "r", "U"};
    if (!result.empty()) result += ' ';
    result += kNames[static_cast<std::size_t>(a.kind)];
    result += a.unit == kRoot ? std::string("*") : std::to_string(a.unit);
  }
  return result;
}

std::vector<UnitTraits> three_blocks() {
  std::vector<UnitTraits> units(4);
  units[kRoot].root = true;
  return units;
}

ScheduleOptions at_stage(Stage stage) {
  ScheduleOptions options;
  options.stage = stage;
  options.ranks = 2;
  return options;
}

Schedule known(const ScheduleOptions& options) {
  return Schedule(three_blocks(), options, std::vector<UnitIndex>{0, 1, 2});
}

std::string forward(Schedule& s, Pass pass = Pass::kTraining) {
  std::string log = text(s.forward_begins(kRoot, pass));
  for (UnitIndex u : {0, 1, 2}) {
    log += " | " + text(s.forward_begins(u, pass));
    log += " . " + text(s.forward_ends(u));
  }
  return log + " | " + text(s.forward_ends(kRoot));
}

std::string backward(Schedule& s) {
  std::string log = text(s.backward_begins(kRoot));
  for (UnitIndex u : {2, 1, 0}) {
    log += " | " + text(s.backward_begins(u));
    log += " . " + text(s.gradients_complete(u));
    s.backward_passed(u);
  }
  log += " | " + text(s.gradients_complete(kRoot));
  return log + " | " + text(s.backward_ends());
}

}  // namespace

TEST_CASE("stage 3 with a known order gathers one block ahead, the root once") {
  Schedule s = known(at_stage(Stage::kParameters));
  CHECK(forward(s) == "+* =* +0 | =0 +1 . -0 | =1 +2 . -1 | =2 . -2 | ");
  CHECK(s.gathered() == 1);
  CHECK(backward(s) == "+2 | =2 +1 . -2 R2 | =1 +0 . -1 r2 R1 | =0 . -0 r1 R0 | -* r0 R* | r*");
  CHECK(s.gathered() == 0);
  CHECK(s.bound() == 3);
}

TEST_CASE("stage 3, first pass of an unknown order: no prefetch; the next pass has the order") {
  Schedule s(three_blocks(), at_stage(Stage::kParameters));
  CHECK(forward(s) == "+* =* | +0 =0 . -0 | +1 =1 . -1 | +2 =2 . -2 | ");
  CHECK(backward(s) == " | +2 =2 . -2 R2 | +1 =1 . -1 r2 R1 | +0 =0 . -0 r1 R0 | -* r0 R* | r*");
  CHECK(forward(s) == "+* =* +0 | =0 +1 . -0 | =1 +2 . -1 | =2 . -2 | ");
  CHECK(backward(s) == "+2 | =2 +1 . -2 R2 | =1 +0 . -1 r2 R1 | =0 . -0 r1 R0 | -* r0 R* | r*");
}

TEST_CASE("without prefetch nothing is gathered ahead") {
  ScheduleOptions options = at_stage(Stage::kParameters);
  options.prefetch = 0;
  Schedule s = known(options);
  CHECK(forward(s) == "+* =* | +0 =0 . -0 | +1 =1 . -1 | +2 =2 . -2 | ");
  CHECK(s.bound() == 2);
}

TEST_CASE("reshard_root releases the root after forward and gathers it again") {
  ScheduleOptions options = at_stage(Stage::kParameters);
  options.reshard_root = true;
  Schedule s = known(options);
  CHECK(forward(s) == "+* =* +0 | =0 +1 . -0 | =1 +2 . -1 | =2 . -2 | -*");
  CHECK(backward(s) ==
        "+* =* +2 | =2 +1 . -2 R2 | =1 +0 . -1 r2 R1 | =0 . -0 r1 R0 | -* r0 R* | r*");
}

TEST_CASE("an evaluation releases the root, too, and reduces nothing") {
  Schedule s = known(at_stage(Stage::kParameters));
  CHECK(forward(s, Pass::kEvaluation) == "+* =* +0 | =0 +1 . -0 | =1 +2 . -1 | =2 . -2 | -*");
  CHECK(s.gathered() == 0);
}

TEST_CASE("stages 0 to 2 gather nothing and reduce each block once") {
  for (Stage stage : {Stage::kNothing, Stage::kOptimizer, Stage::kGradients}) {
    Schedule s = known(at_stage(stage));
    CHECK(forward(s) == " |  .  |  .  |  .  | ");
    CHECK(backward(s) == " |  . R2 |  . r2 R1 |  . r1 R0 | r0 R* | r*");
    const bool updates = stage != Stage::kNothing;
    CHECK(text(s.updated(1)) == (updates ? "U1" : ""));
  }
}

TEST_CASE("stage 0 on one rank does nothing") {
  ScheduleOptions options;
  Schedule s = known(options);
  CHECK(forward(s) == " |  .  |  .  |  .  | ");
  CHECK(backward(s) == " |  .  |  .  |  .  |  | ");
  CHECK(text(s.updated(1)) == "");
}

TEST_CASE("unsynchronised micro-batches reduce with the last one alone") {
  ScheduleOptions options = at_stage(Stage::kGradients);
  options.reduce_each = false;
  Schedule s = known(options);
  s.begin_micro_batch(false);
  forward(s);
  CHECK(backward(s) == " |  .  |  .  |  .  |  | ");
  s.begin_micro_batch(true);
  forward(s);
  CHECK(backward(s) == " |  . R2 |  . r2 R1 |  . r1 R0 | r0 R* | r*");
}

TEST_CASE("a rerun of a checkpointed block gathers nothing again") {
  Schedule s = known(at_stage(Stage::kParameters));
  forward(s);
  s.backward_begins(kRoot);
  s.backward_begins(2);
  CHECK(text(s.forward_begins(2)) == "");
  CHECK(text(s.forward_ends(2)) == "");
  CHECK(s.storage(2) == Schedule::Storage::kUnsharded);
  CHECK(text(s.gradients_complete(2)) == "-2 R2");
}

TEST_CASE("a rerun around two blocks gathers the first one for itself") {
  ScheduleOptions options = at_stage(Stage::kParameters);
  options.prefetch = 0;
  Schedule s = known(options);
  forward(s);
  s.backward_begins(kRoot);
  s.backward_begins(2);
  CHECK(text(s.forward_begins(1)) == "+1 =1");
  CHECK(text(s.forward_ends(1)) == "-1");
  CHECK(text(s.forward_begins(2)) == "");
  CHECK(text(s.forward_ends(2)) == "");
  CHECK(text(s.gradients_complete(2)) == "-2 R2");
  CHECK(text(s.backward_begins(1)) == "+1 =1");
}

TEST_CASE("a pass that deviates drops the prefetched block and records itself") {
  Schedule s = known(at_stage(Stage::kParameters));
  CHECK(text(s.forward_begins(kRoot)) == "+* =* +0");
  CHECK(text(s.forward_begins(2)) == "=0 -0 +2 =2");
  CHECK(text(s.forward_ends(2)) == "-2");
  CHECK(text(s.forward_begins(1)) == "+1 =1");
  CHECK(text(s.forward_ends(1)) == "-1");
  s.forward_ends(kRoot);
  s.backward_ends();
  CHECK(text(s.forward_begins(kRoot)) == "+* =* +2");
  CHECK(text(s.forward_begins(2)) == "=2 +1");
}

TEST_CASE("a unit with frozen parameters is released when its input's gradient is there") {
  std::vector<UnitTraits> units = three_blocks();
  units[2].has_frozen = true;
  units[1].has_trainable = false;
  units[1].has_frozen = true;
  Schedule s(units, at_stage(Stage::kParameters), std::vector<UnitIndex>{0, 1, 2});
  forward(s);
  s.backward_begins(kRoot);
  CHECK(text(s.backward_begins(2)) == "=2 +1");
  CHECK(text(s.gradients_complete(2)) == "R2");
  CHECK(text(s.backward_passed(2)) == "-2");
  CHECK(text(s.backward_begins(1)) == "=1 +0");
  CHECK(text(s.backward_passed(1)) == "-1");
}

TEST_CASE("units whose gradients never complete are reduced as backward ends") {
  Schedule s = known(at_stage(Stage::kGradients));
  forward(s);
  s.backward_begins(kRoot);
  CHECK(text(s.gradients_complete(2)) == "R2");
  CHECK(text(s.gradients_complete(kRoot)) == "r2 R*");
  CHECK(text(s.backward_ends()) == "r* R0 r0 R1 r1");
}

TEST_CASE("two forwards, then two backwards: each backward gathers what it needs") {
  ScheduleOptions options = at_stage(Stage::kParameters);
  options.prefetch = 0;
  Schedule s = known(options);
  forward(s);
  CHECK(forward(s) == " | +0 =0 . -0 | +1 =1 . -1 | +2 =2 . -2 | ");
  backward(s);
  CHECK(backward(s) ==
        "+* =* | +2 =2 . -2 R2 | +1 =1 . -1 r2 R1 | +0 =0 . -0 r1 R0 | -* r0 R* | r*");
  CHECK(s.gathered() == 0);
}

TEST_CASE("an exception in the middle: everything is waited for, released and forgotten") {
  Schedule s = known(at_stage(Stage::kParameters));
  s.forward_begins(kRoot);
  s.forward_begins(0);
  CHECK(text(s.abandon()) == "-0 =1 -1 -*");
  CHECK(forward(s) == "+* =* +0 | =0 +1 . -0 | =1 +2 . -1 | =2 . -2 | ");
}

TEST_CASE("illegal events are our bug") {
  Schedule s = known(at_stage(Stage::kParameters));
  CHECK_THROWS_AS(s.forward_ends(0), InternalError);
  CHECK_THROWS_AS(s.forward_begins(4), InternalError);
  s.forward_begins(kRoot);
  CHECK_THROWS_AS(s.backward_begins(0), InternalError);
  Schedule t = known(at_stage(Stage::kGradients));
  forward(t);
  t.gradients_complete(1);
  CHECK_THROWS_AS(t.gradients_complete(1), InternalError);
}

}  // namespace plimsoll::test
