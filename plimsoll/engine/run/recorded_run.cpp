#include "plimsoll/engine/run/recorded_run.hpp"

#include <memory>
#include <optional>

#include "plimsoll/comm/self.hpp"
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
  std::unique_ptr<comm::Communicator> alone;
  runner_options.world = options.world;
  if (job.sharded() && options.world == nullptr) {
    alone = options.device == at::kMeta ? comm::make_fake(0, job.ranks) : comm::make_self();
    runner_options.world = alone.get();
  }
  Runner runner(network, job, runner_options);
  for (std::int32_t s = 0; s < options.steps; ++s) {
    if (options.before_step) options.before_step(s);
    if (job.infers()) {
      runner.infer();
    } else {
      runner.step();
    }
  }
  return meter.finish();
}

}  // namespace plimsoll::engine
