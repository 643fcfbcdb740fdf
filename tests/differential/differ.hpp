// Runs one job three ways and says where they first differ.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/engine/library/reference_kernels.hpp"
#include "plimsoll/engine/run/recorded_run.hpp"
#include "plimsoll/network/families/families.hpp"
#include "plimsoll/plan/walk.hpp"
#include "plimsoll/timeline/comparison.hpp"

namespace plimsoll::tests {

// Event order is defined at one thread, and scratch is known for libtorch's own kernels.
inline void prepare_library() {
  engine::use_reference_kernels();
  at::set_num_threads(1);
}

inline std::optional<timeline::Difference> calculated_against(
    const network::Network& net, const plan::Job& job, at::Device device,
    timeline::Depth depth = timeline::Depth::kEvents, std::int32_t steps = 2) {
  plan::WalkOptions walk_options;
  walk_options.steps = steps;
  const timeline::Timeline calculated = plan::walk_timeline(net, job, walk_options);
  engine::RecordOptions record;
  record.device = device;
  record.steps = steps;
  const timeline::Timeline seen = engine::record_run(net, job, record);
  return timeline::first_difference(timeline::comparable(calculated), timeline::comparable(seen),
                                    depth);
}

inline std::optional<timeline::Difference> calculated_against(
    const network::NetworkSpec& spec, const plan::Job& job, at::Device device,
    timeline::Depth depth = timeline::Depth::kEvents, std::int32_t steps = 2) {
  return calculated_against(network::build_network(spec, job.build_options()), job, device, depth,
                            steps);
}

inline std::string text_of(const std::optional<timeline::Difference>& difference) {
  return difference ? timeline::to_text(*difference) : "equal";
}

}  // namespace plimsoll::tests
