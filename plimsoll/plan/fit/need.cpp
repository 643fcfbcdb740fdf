#include "plimsoll/plan/fit/need.hpp"

#include <algorithm>

#include "plimsoll/plan/memory_sink.hpp"
#include "plimsoll/plan/network_units.hpp"
#include "plimsoll/plan/walk.hpp"
#include "plimsoll/shard/memory.hpp"

namespace plimsoll::plan {
namespace {

double flops_of(const PassFlops& flops, std::int32_t micro_batches) {
  const auto full = [](const network::FlopCount& count) {
    return static_cast<double>(count.total_full());
  };
  return (full(flops.forward) + full(flops.backward) + full(flops.recompute)) * micro_batches;
}

std::int64_t weights_and_cache(const network::Network& network) {
  std::int64_t sum = 0;
  const auto add = [&](const network::Dims& shape, DType dtype) {
    sum = checked_add(sum, checked_mul(network::element_count(shape), network::size_of(dtype)));
  };
  for (const network::Parameter& p : network.parameters) add(p.shape, p.dtype);
  for (const network::Buffer& b : network.buffers) add(b.shape, b.dtype);
  return sum;
}

// Parameters, masters, gradients and moments, all alive when the optimizer steps.
std::int64_t model_states(const network::Network& network, const Job& job) {
  if (job.infers()) return weights_and_cache(network);
  return shard::resident(units_of(network, job.ranks).layouts, job.stage, job.arithmetic()).total();
}

}  // namespace

std::string_view decided_by(const Job& job) {
  return job.backend == Backend::kCuda
             ? "reserved by the caching allocator, at the highest of the run"
             : "requested bytes at the peak of the timeline";
}

std::int64_t available_bytes(const Job& job) {
  check(job.device != nullptr, "a job without a device");
  return hardware::memory_budget(*job.device, job.reserve).available();
}

Need NeedSearch::requested_need(const network::Network& network, const Job& job) {
  // States exist from the start: the highest instant of the first step is no higher than that of a
  // steady one, and a search pays for one step instead of two.
  const WalkOptions options{.steps = 1, .warm = true, .memory = &memory_};
  timeline::PeakSink sink;
  const WalkResult result = walk(network, job, options, sink);
  Need need;
  need.bytes = need.requested = sink.peak(0).bytes;
  need.flops = flops_of(result.flops, job.accumulate);
  need.traffic = result.traffic.bytes();
  return need;
}

// Both steps, as a plan walks them: what the first one leaves in the allocator is part of the figure.
Need NeedSearch::reserved_need(const network::Network& network, const Job& job) {
  const WalkOptions options{.memory = &memory_};
  MemorySink sink(network, job);
  const WalkResult result = walk(network, job, options, sink);
  Need need;
  need.bytes = sink.allocator->reserved_peak().bytes;
  for (std::int32_t step = 0; step < options.steps; ++step) {
    need.requested = std::max(need.requested, sink.peak.peak(step).bytes);
  }
  need.flops = flops_of(result.flops, job.accumulate);
  need.traffic = result.traffic.bytes();
  return need;
}

std::optional<Need> NeedSearch::ask(const Job& job, bool quickly) {
  if (!validate(job, spec_)) return std::nullopt;
  ++walks_;
  const std::int64_t available = available_bytes(job);
  const auto answer = [&](Need need) {
    need.available = available;
    need.fits = need.bytes <= available;
    return need;
  };
  try {
    const network::Network network = network::build_network(spec_, job.build_options());
    if (quickly) {
      Need least;
      least.bytes = least.requested = model_states(network, job);
      least.at_least = true;
      if (least.bytes > available) return answer(least);
    }
    const bool allocates = job.backend == Backend::kCuda;
    if (!allocates || quickly) {
      const Need need = answer(requested_need(network, job));
      if (!allocates || !need.fits) return need;
    }
    return answer(reserved_need(network, job));
  } catch (const OverflowError&) {
    return std::nullopt;
  }
}

std::optional<Need> NeedSearch::of(const Job& job) { return ask(job, false); }

std::optional<Need> NeedSearch::quick(const Job& job) { return ask(job, true); }

}  // namespace plimsoll::plan
