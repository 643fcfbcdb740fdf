#include "plimsoll/engine/run/saved_tensors.hpp"

#include <optional>

#include "plimsoll/engine/dry/meta_mode.hpp"
#include "plimsoll/engine/run/runner.hpp"

namespace plimsoll::engine {

SavedTensors saved_tensors(const network::Network& network, const plan::Job& job,
                           at::Device device) {
  check(!job.recomputes(), "saved tensors of a checkpointed network");
  std::optional<MetaMode> dry;
  if (device == at::kMeta) {
    dry.emplace(job.backend == plan::Backend::kCpu ? Flavour::kCpu : Flavour::kCuda);
  }
  RunnerOptions options;
  options.device = device;
  Runner runner(network, job, options);
  SavedTensorRecorder recorder;
  const SavedTensorScope scope(&recorder);
  const at::Tensor loss = runner.forward_loss();
  return {recorder.tensors(), recorder.ledger()};
}

}  // namespace plimsoll::engine
