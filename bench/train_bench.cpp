// Training in one process: our steps against PyTorch's, what the meter costs, and the optimizer.
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/engine/library/process_memory.hpp"
#include "plimsoll/engine/optim/kernels.hpp"
#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/network/families/families.hpp"

#include "bench/gpt_shapes.hpp"
#include "bench/harness.hpp"
#include "bench/paced_peer.hpp"

namespace {

using nlohmann::json;
using plimsoll::bench::at_least;
using plimsoll::bench::at_most;
using plimsoll::bench::Clock;
using plimsoll::bench::Elapsed;
using plimsoll::bench::elapsed;
using plimsoll::bench::interleave;
using plimsoll::bench::PacedPeer;
using plimsoll::bench::Pairs;
using plimsoll::bench::Report;
using plimsoll::bench::Shape;
using plimsoll::bench::Summary;
namespace engine = plimsoll::engine;
namespace network = plimsoll::network;
namespace plan = plimsoll::plan;
namespace timeline = plimsoll::timeline;

constexpr Shape kSmall = plimsoll::bench::kGpt10M;
constexpr Shape kLarge = plimsoll::bench::kGpt124M;

void training(const Shape& shape) {
  PacedPeer peer("peer_train.py", plimsoll::bench::peer_arguments(shape, "single"));
  plimsoll::tests::ClosedFormRun run(plimsoll::bench::config_of(shape, shape.batch));
  const double first_loss = run.step();
  run.step();
  for (int i = 0; i < 2; ++i) peer.step();
  const Pairs pairs = interleave(
      shape.pairs, [&] { return peer.step(); }, [&] { return elapsed([&] { run.step(); }); });
  const json said = peer.finish();
  plimsoll::bench::check_loss(first_loss, said);
  const double peer_peak = said["peak_bytes"];
  const auto own_peak = static_cast<double>(plimsoll::bench::metered_peak(run));

  Report report(
      fmt::format("Training: {}, {} parameters, batch {}, sequence {}, fp32, AdamW, one "
                  "thread",
                  shape.name, run.network().parameter_elements(), shape.batch, shape.sequence));
  report.row("one step, plimsoll, CPU time", pairs.second(Clock::kCpu), 1e3, "ms");
  report.row("one step, PyTorch, CPU time", pairs.first(Clock::kCpu), 1e3, "ms");
  report.strict_row("tokens/s against PyTorch, CPU time", pairs.ratio(Clock::kCpu), 1, "ratio",
                    at_least(0.98));
  report.row("tokens/s against PyTorch, wall time", pairs.ratio(Clock::kWall), 1, "ratio");
  report.exact("peak of a step, PyTorch", peer_peak, "bytes");
  report.exact("peak of a step, plimsoll", own_peak, "bytes", at_most(peer_peak));
  report.print();
}

// --- the meter

network::NetworkSpec spec_of(const Shape& s) {
  network::NetworkSpec spec;
  spec.family = network::Family::kMiniGpt;
  spec.width = s.dim;
  spec.layers = s.layers;
  spec.heads = spec.kv_heads = s.heads;
  spec.head_dim = s.dim / s.heads;
  spec.feed_forward = 4 * s.dim;
  spec.vocabulary = s.vocabulary;
  spec.positions = s.sequence;
  return spec;
}

// The second step of a new run, with a meter that is told phases and operations, or without one.
Elapsed second_step(const network::Network& net, const plan::Job& job, bool metered) {
  std::optional<engine::Meter> meter;
  engine::RunnerOptions options;
  if (metered) options.meter = &meter.emplace();
  engine::Runner runner(net, job, options);
  runner.step();
  return elapsed([&] { runner.step(); });
}

Pairs metered_and_not(const Shape& shape) {
  plan::Job job;
  job.batch = shape.batch;
  job.sequence = shape.sequence;
  const network::Network net = network::build_network(spec_of(shape), job.build_options());
  const auto step = [&](bool metered) { return second_step(net, job, metered); };
  return interleave(
      shape.pairs, [&] { return step(true); }, [&] { return step(false); });
}

// The meter's work depends on how many operations and blocks there are, not on their sizes. So its
// seconds are taken from a step of the same operations on tiny tensors, where they are not lost in
// the noise of the arithmetic, and divided by the seconds of the real step.
void meter_overhead(const Shape& shape) {
  Shape tiny = shape;
  tiny.dim = 4 * shape.heads;
  tiny.sequence = tiny.batch = 1;
  tiny.pairs = 301;
  Shape real = shape;
  real.pairs = 11;
  const Pairs cost = metered_and_not(tiny);
  const Pairs steps = metered_and_not(real);
  const Summary plain = steps.second(Clock::kCpu);
  Report report(fmt::format("Meter: one step of {}, CPU time", shape.name));
  report.row("the meter's own time", cost.difference(Clock::kCpu), 1e3, "ms");
  report.row("a step without it", plain, 1e3, "ms");
  report.strict_row("the meter's share", cost.difference(Clock::kCpu), 100 / plain.median, "%",
                    at_most(2));
  report.row("a step with it against one without", steps.ratio(Clock::kCpu), 1, "ratio");
  report.print();
}

// --- the optimizer

struct OptimizerTensors {
  explicit OptimizerTensors(std::int64_t n)
      : range{at::randn({n}), at::randn({n}), at::zeros({n}), at::zeros({n}), {}} {}

  void own_step() { plimsoll::engine::adamw_step(range, {}, ++steps, 1.0); }
  void fused_step() {
    counter.add_(at::Scalar(1.0));
    at::_fused_adamw_({range.weights}, {range.gradient}, {range.first}, {range.second}, {},
                      {counter}, 1e-3, 0.9, 0.999, 0.01, 1e-8, false, false);
  }

  engine::OptimizerRange range;
  at::Tensor counter = at::zeros({});
  std::int64_t steps = 0;
};

void optimizer(std::int64_t n) {
  OptimizerTensors own(n);
  OptimizerTensors fused(n);
  const auto bytes = static_cast<std::size_t>(n) * sizeof(float);
  const auto copy = [&] {
    return elapsed(
        [&] { std::memcpy(fused.range.weights.data_ptr(), own.range.weights.data_ptr(), bytes); });
  };
  const auto own_step = [&] { return elapsed([&] { own.own_step(); }); };
  const auto fused_step = [&] { return elapsed([&] { fused.fused_step(); }); };
  own_step();
  fused_step();
  const Pairs against_copy = interleave(25, copy, own_step);
  const Pairs against_fused = interleave(25, fused_step, own_step);
  // A step reads w, g, m, v and writes w, m, v; a copy reads and writes one array.
  constexpr double kTraffic = 28.0 / 8.0;
  Report report(fmt::format("Optimizer: AdamW on {} fp32 parameters, one thread, CPU time", n));
  report.row("adamw_step", against_copy.second(Clock::kCpu), 1e3, "ms");
  report.strict_row("bytes/s (28 per parameter) against memcpy's (8)",
                    against_copy.ratio(Clock::kCpu), kTraffic, "ratio", at_least(0.9));
  report.strict_row("speed against at::_fused_adamw_", against_fused.ratio(Clock::kCpu), 1, "ratio",
                    at_least(0.98));
  report.print();
}

}  // namespace

// train_bench [small|large|meter|optimizer]...: which parts; all of them without arguments.
int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  engine::keep_memory();  // as a rank of `plimsoll train` does
  at::set_num_threads(1);
  const auto wanted = [&](std::string_view part) {
    if (argc == 1) return true;
    for (int i = 1; i < argc; ++i) {
      if (part == argv[i]) return true;
    }
    return false;
  };
  try {
    if (wanted("optimizer")) optimizer(std::int64_t{1} << 25);
    if (wanted("meter")) meter_overhead(kSmall);
    if (wanted("small")) training(kSmall);
    if (wanted("large")) training(kLarge);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
