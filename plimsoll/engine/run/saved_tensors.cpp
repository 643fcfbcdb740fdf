#include "plimsoll/engine/run/saved_tensors.hpp"

#include <optional>
#include <set>

#include "plimsoll/engine/dry/meta_mode.hpp"
#include "plimsoll/engine/run/runner.hpp"

namespace plimsoll::engine {

std::vector<SavedTensor> saved_tensors(const network::Network& network, const plan::Job& job,
                                       at::Device device) {
  check(job.checkpoint == network::Checkpoint::kNone, "saved tensors of a checkpointed network");
  std::optional<MetaMode> dry;
  if (device == at::kMeta) {
    dry.emplace(job.backend == plan::Backend::kCpu ? Flavour::kCpu : Flavour::kCuda);
  }
  RunnerOptions options;
  options.device = device;
  Runner runner(network, job, options);
  const std::vector<at::Tensor> state = runner.parameters_and_buffers();
  SavedTensorRecorder recorder(state);
  const SavedTensorScope scope(&recorder);
  const at::Tensor loss = runner.forward_loss();
  return recorder.tensors();
}

plan::Ledger ledger_of(const std::vector<SavedTensor>& saved) {
  plan::Ledger ledger;
  std::set<const void*> seen;
  const auto add = [](plan::LedgerLine& line, std::int64_t bytes) {
    line.bytes += bytes;
    ++line.count;
  };
  for (const SavedTensor& s : saved) {
    add(ledger.as_saved, s.bytes);
    if (s.parameter) continue;
    add(ledger.without_parameters, s.bytes);
    if (seen.insert(s.storage).second && s.storage_bytes > 0) {
      add(ledger.distinct, s.storage_bytes);
    }
  }
  return ledger;
}

}  // namespace plimsoll::engine
