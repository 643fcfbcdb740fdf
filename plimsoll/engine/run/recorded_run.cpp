#include "plimsoll/engine/run/recorded_run.hpp"

namespace plimsoll::engine {

timeline::Timeline record_run(const network::Network& network, const plan::Job& job,
                              const RecordOptions& options) {
  Meter meter;
  RunnerOptions runner_options;
  runner_options.device = options.device;
  runner_options.seed = options.seed;
  runner_options.meter = &meter;
  Runner runner(network, job, runner_options);
  for (std::int32_t s = 0; s < options.steps; ++s) runner.step();
  return meter.finish();
}

}  // namespace plimsoll::engine
