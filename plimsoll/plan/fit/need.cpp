#include "plimsoll/plan/fit/need.hpp"

#include "plimsoll/plan/walk.hpp"

namespace plimsoll::plan {
namespace {

double flops_of(const PassFlops& flops, std::int32_t micro_batches) {
  const auto full = [](const network::FlopCount& count) {
    return static_cast<double>(count.total_full());
  };
  return (full(flops.forward) + full(flops.backward) + full(flops.recompute)) * micro_batches;
}

}  // namespace

std::string_view decided_by() { return "requested bytes at the peak of the timeline"; }

std::int64_t available_bytes(const Job& job) {
  check(job.device != nullptr, "a job without a device");
  return hardware::memory_budget(*job.device, job.reserve).available();
}

std::optional<Need> NeedSearch::of(const Job& job) {
  if (!validate(job, spec_)) return std::nullopt;
  ++walks_;
  try {
    const network::Network network = network::build_network(spec_, job.build_options());
    // States exist from the start: the highest instant of the first step is no higher than that of a
    // steady one, and a search pays for one step instead of two.
    const WalkOptions options{.steps = 1, .warm = true, .memory = &memory_};
    timeline::PeakSink sink;
    const WalkResult result = walk(network, job, options, sink);
    Need need;
    need.bytes = sink.peak(0).bytes;
    need.available = available_bytes(job);
    need.fits = need.bytes <= need.available;
    need.flops = flops_of(result.flops, job.accumulate);
    need.traffic = result.traffic.bytes();
    return need;
  } catch (const OverflowError&) {
    return std::nullopt;
  }
}

}  // namespace plimsoll::plan
