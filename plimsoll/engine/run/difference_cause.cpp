#include "plimsoll/engine/run/difference_cause.hpp"

#include <fmt/format.h>

#include "plimsoll/engine/library/reference_kernels.hpp"
#include "plimsoll/engine/library/version.hpp"
#include "plimsoll/network/library_facts.hpp"

namespace plimsoll::engine {

LibraryState library_state() {
  return {libtorch_version(), is_known_libtorch(), runs_reference_kernels(), cpu_multiplies_bf16()};
}

std::string difference_cause(const plan::Job& job, const LibraryState& state, bool transient) {
  if (!state.known) {
    return fmt::format("libtorch {}: the facts describe {}", state.version,
                       network::kKnownLibtorch);
  }
  if (!transient) return "";
  const bool narrow = network::size_of(job.recipe().compute) == 2;
  if (narrow && state.multiplies_bf16 && !state.reference_kernels) {
    return "oneDNN's scratch for 16-bit products on this processor";
  }
  return job.threads > 1 ? "scratch of worker threads, whose number varies" : "";
}

}  // namespace plimsoll::engine
