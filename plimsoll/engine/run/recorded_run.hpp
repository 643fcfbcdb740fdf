// A whole run under the meter: the measured step, or on the meta device the dry-run step.
#pragma once

#include <functional>

#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::engine {

struct RecordOptions {
  at::Device device = at::kCPU;  // kMeta: dry run, no memory, no arithmetic
  std::int32_t steps = 2;        // step 0 is the first, the last one is steady; of inference passes
  std::uint64_t seed = 0;
  comm::Communicator* world = nullptr;  // of a sharded job; none: on meta rank 0 without peers
  std::function<void(std::int32_t step)> before_step;  // for progress; may be empty
};

// Builds the network's tensors, runs `steps` steps and drops everything. The timeline counts from the
// bytes that were alive before. Threads: at::get_num_threads() should equal job.threads.
timeline::Timeline record_run(const network::Network& network, const plan::Job& job,
                              const RecordOptions& options);

}  // namespace plimsoll::engine
