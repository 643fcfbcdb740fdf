// The walk against figures that were measured byte by byte with libtorch 2.13 on the CPU, one thread.
#include <array>
#include <string>

#include <doctest/doctest.h>

#include "plimsoll/formats/inline_model.hpp"
#include "plimsoll/plan/ledger.hpp"
#include "plimsoll/plan/walk.hpp"

namespace plimsoll {
namespace {

using plan::Precision;
using timeline::Phase;

plan::Job table_job(std::int64_t batch, std::int64_t sequence, Precision precision) {
  plan::Job job;
  job.batch = batch;
  job.sequence = sequence;
  job.precision = precision;
  job.optimizer_impl = plan::OptimizerImpl::kTorchCpp;
  return job;
}

network::NetworkSpec table_model(const std::string& text) {
  auto spec = formats::read_inline_model(text);
  REQUIRE(spec.has_value());
  return *spec;
}

struct Run {
  timeline::Timeline timeline;
  plan::WalkResult result;
  std::vector<timeline::PhaseFigures> phases;

  Run(const network::NetworkSpec& spec, const plan::Job& job) {
    const network::Network net = network::build_network(spec, job.build_options());
    plan::WalkOptions options;
    options.steps = 3;
    options.keep_ledger = true;
    timeline = plan::walk_timeline(net, job, options, &result);
    phases = timeline::phase_figures(timeline);
  }
  timeline::PhaseFigures of(Phase phase, std::int32_t step) const {
    for (const timeline::PhaseFigures& f : phases) {
      if (f.key.phase == phase && f.key.step == step) return f;
    }
    FAIL("no such phase");
    return {};
  }
};

const std::string kStandard = "minigpt:d=128,L=4,V=1000,s=64,heads=4";
const std::string kOdd = "minigpt:d=96,L=4,V=997,s=50,heads=4";

}  // namespace

TEST_CASE("third step of the inline GPT: backward and optimizer, five runs") {
  struct Row {
    const std::string& model;
    std::int64_t sequence, batch;
    Precision precision;
    std::array<std::int64_t, 3> backward;  // start, end, peak
    std::int64_t optimizer_peak, first_backward_peak, first_optimizer_peak;
  };
  const std::array<Row, 5> rows = {{
      {kStandard,
       64,
       1,
       Precision::kFp32,
       {13528072, 14799876, 15824392},
       15823888,
       8424968,
       15322128},
      {kStandard,
       64,
       4,
       Precision::kFp32,
       {20813320, 14802948, 22861320},
       15826960,
       15461896,
       15325200},
      {kStandard,
       64,
       4,
       Precision::kBf16,
       {10417156, 7403522, 11441156},
       7915532,
       7741444,
       7664652},
      {kOdd, 50, 2, Precision::kFp32, {9484104, 8715332, 10281704}, 9481040, 5924840, 9008720},
      {kOdd, 50, 1, Precision::kBf16, {4007152, 4357666, 4740916}, 4740524, 2562484, 4504364},
  }};
  for (const Row& row : rows) {
    CAPTURE(row.model);
    CAPTURE(row.batch);
    const Run run(table_model(row.model), table_job(row.batch, row.sequence, row.precision));
    const timeline::PhaseFigures backward = run.of(Phase::kBackward, 2);
    CHECK(backward.start == row.backward[0]);
    CHECK(backward.end == row.backward[1]);
    CHECK(backward.peak == row.backward[2]);
    CHECK(run.of(Phase::kOptimizer, 2).peak == row.optimizer_peak);
    CHECK(run.of(Phase::kBackward, 0).peak == row.first_backward_peak);
    CHECK(run.of(Phase::kOptimizer, 0).peak == row.first_optimizer_peak);
  }
}

TEST_CASE("third step of the inline GPT at B = 4: every phase, fp32 and bf16") {
  const Run fp32(table_model(kStandard), table_job(4, 64, Precision::kFp32));
  const auto check = [](const timeline::PhaseFigures& f, std::int64_t start, std::int64_t end,
                        std::int64_t peak) {
    CAPTURE(timeline::name(f.key.phase));
    CHECK(f.start == start);
    CHECK(f.end == end);
    CHECK(f.peak == peak);
  };
  check(fp32.of(Phase::kZeroGrad, 2), 14802944, 11103232, 14802944);
  check(fp32.of(Phase::kForward, 2), 11103232, 20813312, 20813312);
  check(fp32.of(Phase::kLoss, 2), 20813312, 21837320, 21837320);
  check(fp32.of(Phase::kBackward, 2), 20813320, 14802948, 22861320);
  check(fp32.of(Phase::kOptimizer, 2), 14802948, 14802948, 15826960);
  CHECK(fp32.of(Phase::kZeroGrad, 0).start == 3703808);
  const Run bf16(table_model(kStandard), table_job(4, 64, Precision::kBf16));
  CHECK(bf16.of(Phase::kZeroGrad, 2).start == 7403520);
  check(bf16.of(Phase::kForward, 2), 5553664, 10417152, 10417152);
  CHECK(bf16.of(Phase::kLoss, 2).end == 10929156);
}

TEST_CASE("saved tensors by the three conventions: A0 and k, fp32 and bf16, flash and math") {
  struct Row {
    const std::string& model;
    std::int64_t sequence;
    Precision precision;
    bool math;
    std::int64_t as_saved_A0, as_saved_k, distinct_A0, distinct_k;
  };
  const std::array<Row, 6> rows = {{
      {kStandard, 64, Precision::kFp32, false, 3667460, 2815488, 516, 2428416},
      {kOdd, 50, Precision::kFp32, false, 2159636, 1750400, 404, 1474200},
      {kOdd, 50, Precision::kBf16, false, 1080018, 877200, 402, 739100},
      {kStandard, 64, Precision::kBf16, false, 1833986, 1410304, 514, 1216768},
      {kStandard, 64, Precision::kFp32, true, 3667460, 3204608, 516, 2686464},
      {kStandard, 64, Precision::kBf16, true, 1833986, 2061568, 514, 1671424},
  }};
  for (const Row& row : rows) {
    CAPTURE(row.model);
    CAPTURE(row.math);
    const auto ledger = [&](std::int64_t batch) {
      plan::Job job = table_job(batch, row.sequence, row.precision);
      if (row.math) job.attention = network::AttentionKernel::kMath;
      return plan::count_ledger(Run(table_model(row.model), job).result.ledger);
    };
    const plan::Ledger two = ledger(2);
    const plan::Ledger five = ledger(5);
    CHECK(two.as_saved.count == 109);
    const std::int64_t k = (five.as_saved.bytes - two.as_saved.bytes) / 3;
    CHECK(k == row.as_saved_k);
    CHECK(two.as_saved.bytes - 2 * k == row.as_saved_A0);
    CHECK(two.without_parameters.count == 74);
    if (!row.math) CHECK(two.distinct.count == 61);
    const std::int64_t distinct_k = (five.distinct.bytes - two.distinct.bytes) / 3;
    CHECK(distinct_k == row.distinct_k);
    CHECK(two.distinct.bytes - 2 * distinct_k == row.distinct_A0);
  }
  plan::Job math = table_job(1, 64, Precision::kFp32);
  math.attention = network::AttentionKernel::kMath;
  const Run one(table_model(kStandard), math);
  CHECK(plan::count_ledger(one.result.ledger).distinct.bytes == 2949124);
}

TEST_CASE("checkpoint per block, B = 4: kept and peak over the start") {
  plan::Job job = table_job(4, 64, Precision::kFp32);
  job.checkpoint = network::Checkpoint::kBlock;
  const Run run(table_model(kStandard), job);
  const std::int64_t start = run.of(Phase::kForward, 1).start;
  CHECK(run.of(Phase::kBackward, 1).start - start == 1813000);
  CHECK(run.of(Phase::kBackward, 1).peak - start == 5901832);
}

}  // namespace plimsoll
