#include "plimsoll/engine/run/recorded_run.hpp"

#include <optional>

#include "plimsoll/engine/dry/meta_mode.hpp"

namespace plimsoll::engine {

timeline::Timeline record_run(const network::Network& network, const plan::Job& job,
                              const RecordOptions& options) {
  std::optional<MetaMode> dry;
  if (options.device == at::kMeta) {
    dry.emplace(job.backend == plan::Backend::kCpu ? Flavour::kCpu : Flavour::kCuda);
  }
  Meter meter;
  RunnerOptions runner_options;
  runner_options.device = options.device;
  runner_options.seed = options.seed;
  runner_options.meter = &meter;
  Runner runner(network, job, runner_options);
  for (std::int32_t s = 0; s < options.steps; ++s) {
    if (options.before_step) options.before_step(s);
    runner.step();
  }
  return meter.finish();
}

}  // namespace plimsoll::engine
