#include "plimsoll/study/runs.hpp"

#include <utility>

#include <fmt/format.h>

#include "plimsoll/engine/library/reference_kernels.hpp"
#include "plimsoll/engine/run/recorded_run.hpp"
#include "plimsoll/engine/run/saved_tensors.hpp"
#include "plimsoll/plan/walk.hpp"

namespace plimsoll::study {
namespace {

std::int64_t highest(const timeline::Timeline& timeline) {
  return timeline::find_peak(timeline).bytes;
}

}  // namespace

void prepare_library(const plan::Job& job) {
  at::set_num_threads(job.threads);
  engine::use_reference_kernels();
}

std::optional<std::string> no_measurement(const plan::Job& job) {
  if (job.backend == plan::Backend::kCuda) {
    return torch::cuda::is_available() ? "runs on a CUDA device are not in this version"
                                       : "no CUDA device here";
  }
  return std::nullopt;
}

Error environment_error(const std::string& what) {
  const std::string first_line = what.substr(0, what.find('\n'));
  return {"measure", "the run failed: " + first_line,
          "a smaller --batch or --seq needs less memory", ExitCode::kEnvironment};
}

network::Network network_of(const network::NetworkSpec& spec, const plan::Job& job) {
  return network::build_network(spec, job.build_options());
}

plan::Job with_batch(plan::Job job, std::int64_t batch) {
  job.batch = batch;
  return job;
}

std::vector<network::SavedRecord> calculated_records(const network::Network& network,
                                                     const plan::Job& job) {
  timeline::PeakSink sink;
  plan::WalkOptions options;
  options.steps = 1;
  options.keep_ledger = true;
  return plan::walk(network, job, options, sink).ledger;
}

std::int64_t calculated_activations(const network::Network& network, const plan::Job& job) {
  return plan::count_ledger(calculated_records(network, job)).as_saved.bytes;
}

std::optional<std::int64_t> measured_activations(const network::Network& network,
                                                 const plan::Job& job) {
  if (no_measurement(job) || job.recomputes()) return std::nullopt;
  return engine::saved_tensors(network, job, at::kCPU).ledger.as_saved.bytes;
}

std::int64_t calculated_peak(const network::Network& network, const plan::Job& job) {
  return highest(plan::walk_timeline(network, job, {}));
}

std::int64_t measured_peak(const network::Network& network, const plan::Job& job,
                           std::string_view what, Progress& progress) {
  return highest(told_run(network, job, {}, what, progress));
}

timeline::Timeline told_run(const network::Network& network, const plan::Job& job,
                            engine::RecordOptions options, std::string_view what,
                            Progress& progress) {
  options.before_step = [&](std::int32_t step) {
    progress.update(fmt::format("{}, step {} of {}", what, step + 1, options.steps));
  };
  return engine::record_run(network, job, options);
}

}  // namespace plimsoll::study
