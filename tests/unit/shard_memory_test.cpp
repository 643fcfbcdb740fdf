// Bytes of sharded runs on one unit of 1,001 elements: the tables of memory.hpp with numbers.
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/shard/memory.hpp"

namespace plimsoll::test {
namespace {

using shard::Arithmetic;
using shard::Parameter;
using shard::Resident;
using shard::Stage;
using shard::UnitLayout;

constexpr std::int64_t kElements = 1001;
constexpr std::int32_t kRanks = 4;
constexpr std::int64_t kChunk = 251;
constexpr std::int64_t kPadded = kRanks * kChunk;
constexpr Stage kStages[] = {Stage::kNothing, Stage::kOptimizer, Stage::kGradients,
                             Stage::kParameters};

std::vector<UnitLayout> one_unit(std::int64_t item, std::int32_t ranks = kRanks,
                                 bool trainable = true) {
  const std::vector<Parameter> parameters{{"w", {kElements}, {0, item}, trainable, 0}};
  return {UnitLayout({"u", {0}, {}, false}, parameters, ranks)};
}

// Master weights of 4 bytes beside what forward reads.
Arithmetic mixed() {
  Arithmetic arithmetic;
  arithmetic.master = 4;
  return arithmetic;
}

}  // namespace

TEST_CASE("fp32: 16, 8 + 8/R, 4 + 12/R, 16/R bytes per parameter") {
  const Arithmetic fp32;
  const std::int64_t expected[] = {12 * kElements + 4 * kPadded, 8 * kPadded + 8 * kChunk,
                                   4 * kPadded + 12 * kChunk, 16 * kChunk};
  for (std::size_t s = 0; s < 4; ++s) {
    CHECK(shard::resident(one_unit(4), kStages[s], fp32).total() == expected[s]);
  }
  CHECK(shard::resident(one_unit(4, 1), Stage::kNothing, fp32).total() == 16 * kElements);
}

TEST_CASE("mixed: 4+2+4+8, 2+2+16/R, 2+16/R, 16/R bytes per parameter; 2-byte gradients at R = 1") {
  const std::int64_t expected[] = {14 * kElements + 4 * kPadded, 4 * kPadded + 16 * kChunk,
                                   2 * kPadded + 16 * kChunk, 16 * kChunk};
  for (std::size_t s = 0; s < 4; ++s) {
    CHECK(shard::resident(one_unit(2), kStages[s], mixed()).total() == expected[s]);
  }
  const Resident alone = shard::resident(one_unit(2, 1), Stage::kNothing, mixed());
  CHECK(alone.gradients == 2 * kElements);
  CHECK(alone.total() == 16 * kElements);
}

TEST_CASE("frozen parameters have neither gradients nor moments nor masters") {
  for (Stage stage : kStages) {
    const Resident r = shard::resident(one_unit(2, kRanks, false), stage, mixed());
    CHECK(r.gradients + r.moments + r.masters == 0);
    CHECK(r.parameters == (stage == Stage::kParameters ? 2 * kChunk
                           : stage == Stage::kNothing  ? 2 * kElements
                                                       : 2 * kPadded));
  }
}

TEST_CASE("reduce buffers: what is made, what stays") {
  const auto buffers = [](std::int64_t item, Stage stage, bool first, bool local = false) {
    Arithmetic arithmetic;
    arithmetic.local_sums = local;
    const UnitLayout unit = one_unit(item).front();
    return shard::reduce_buffers(unit.groups().front(), stage, arithmetic, first);
  };
  // 4 bytes: in place, but stages 2 and 3 need somewhere to keep the first sums.
  CHECK(buffers(4, Stage::kNothing, true).input == 4 * kPadded);
  CHECK(buffers(4, Stage::kNothing, true).output == 0);
  CHECK(buffers(4, Stage::kNothing, true).input_stays);
  CHECK(!buffers(4, Stage::kNothing, false).input_stays);
  CHECK(buffers(4, Stage::kOptimizer, true).output == 0);
  CHECK(buffers(4, Stage::kOptimizer, true).input_stays);
  CHECK(buffers(4, Stage::kGradients, true).output == 4 * kChunk);
  CHECK(buffers(4, Stage::kGradients, true).output_stays);
  CHECK(!buffers(4, Stage::kGradients, true).input_stays);
  CHECK(buffers(4, Stage::kParameters, false).output == 0);
  // 2 bytes travel, 4 bytes are summed.
  CHECK(buffers(2, Stage::kNothing, true).input == 2 * kPadded);
  CHECK(buffers(2, Stage::kNothing, true).output == 4 * kPadded);
  CHECK(!buffers(2, Stage::kNothing, true).input_stays);
  CHECK(buffers(2, Stage::kOptimizer, true).input_stays);
  CHECK(buffers(2, Stage::kOptimizer, true).output == 4 * kChunk);
  CHECK(buffers(2, Stage::kGradients, false).output == 4 * kChunk);
  CHECK(!buffers(2, Stage::kGradients, false).output_stays);
  // Sums that were made locally travel as such.
  CHECK(buffers(2, Stage::kGradients, true, true).input == 4 * kPadded);
}

TEST_CASE("traffic: R - 1 slots of each kind") {
  const UnitLayout unit = one_unit(2).front();
  const std::int64_t slot = 3 * kChunk;
  CHECK(shard::gather_traffic(unit) == 2 * slot);
  CHECK(shard::update_traffic(unit) == 2 * slot);
  CHECK(shard::reduce_traffic(unit, Stage::kGradients, mixed()) == 2 * slot);
  CHECK(shard::reduce_traffic(unit, Stage::kNothing, mixed()) == (2 + 4) * slot);
  const UnitLayout frozen = one_unit(2, kRanks, false).front();
  CHECK(shard::gather_traffic(frozen) == 2 * slot);
  CHECK(shard::update_traffic(frozen) == 0);
  CHECK(shard::reduce_traffic(frozen, Stage::kNothing, mixed()) == 0);
}

TEST_CASE("a snapshot holds the slots of masters or parameters and of moments") {
  CHECK(shard::snapshot_bytes(one_unit(2), mixed()) == (4 + 8) * kChunk);
  CHECK(shard::snapshot_bytes(one_unit(4), Arithmetic{}) == (4 + 8) * kChunk);
  CHECK(shard::snapshot_bytes(one_unit(2, kRanks, false), mixed()) == 2 * kChunk);
}

}  // namespace plimsoll::test
