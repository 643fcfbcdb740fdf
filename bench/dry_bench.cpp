// The dry run of a large model (a step on libtorch's meta device, every event recorded) against one
// step of the same architecture under Python's FakeTensorMode.
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/engine/run/recorded_run.hpp"
#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/network/families/families.hpp"

#include "bench/harness.hpp"
#include "bench/paced_peer.hpp"

namespace {

using plimsoll::bench::Clock;
using plimsoll::bench::Elapsed;
using plimsoll::bench::elapsed;
using plimsoll::bench::Pairs;
using plimsoll::bench::Report;
namespace plan = plimsoll::plan;
namespace network = plimsoll::network;

constexpr const char* kModel = "llama-3-8b";
constexpr std::size_t kPairs = 9;

void run() {
  const auto spec = plimsoll::formats::load_model(kModel);
  if (!spec) throw std::runtime_error(format_error(spec.error()));
  plan::Job job;
  job.sequence = 2048;
  plimsoll::bench::PacedPeer peer("fake_step.py", {"--seq", fmt::format("{}", job.sequence)});
  std::size_t events = 0;
  const auto dry_run = [&] {
    const network::Network net = network::build_network(*spec, job.build_options());
    plimsoll::engine::RecordOptions options;
    options.device = at::kMeta;
    options.steps = 1;
    events = plimsoll::engine::record_run(net, job, options).events.size();
  };
  dry_run();
  peer.step();
  const Pairs pairs = plimsoll::bench::interleave(
      kPairs, [&] { return peer.step(); }, [&] { return elapsed(dry_run); });
  const nlohmann::json said = peer.finish();

  Report report(fmt::format("Dry run: {}, batch 1, sequence {}, fp32, AdamW, CPU time", kModel,
                            job.sequence));
  report.row(fmt::format("plimsoll: build, one recorded step, {} events", events),
             pairs.second(Clock::kCpu), 1e3, "ms");
  report.row("FakeTensorMode: one step, model built before", pairs.first(Clock::kCpu), 1e3, "ms");
  report.exact("FakeTensorMode: building the model", said["build_s"].get<double>() * 1e3, "ms");
  report.strict_row("FakeTensorMode's step / our dry run", pairs.ratio(Clock::kCpu), 1, "ratio",
                    plimsoll::bench::at_least(20));
  report.print();
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  at::set_num_threads(1);
  try {
    run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dry_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
