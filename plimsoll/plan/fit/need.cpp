#include "plimsoll/plan/fit/need.hpp"

#include <algorithm>
#include <utility>

#include "plimsoll/plan/fold/folded_walk.hpp"
#include "plimsoll/plan/network_units.hpp"
#include "plimsoll/shard/memory.hpp"

namespace plimsoll::plan {
namespace {

double flops_of(const PassFlops& flops, std::int32_t micro_batches) {
  const auto full = [](const network::FlopCount& count) {
    return static_cast<double>(count.total_full());
  };
  return (full(flops.forward) + full(flops.backward) + full(flops.recompute)) * micro_batches;
}

// True when the allocator's blocks are those of the call before.
class SameBlocks {
 public:
  explicit SameBlocks(const allocator::CachingAllocator& allocator) : allocator_(allocator) {}
  bool operator()() {
    const auto before = std::exchange(pieces_, allocator_.pieces());
    return pieces_ == before;
  }

 private:
  const allocator::CachingAllocator& allocator_;
  std::vector<allocator::CachingAllocator::Piece> pieces_;
};

struct DoesNotFit {};

// Ends the walk, by DoesNotFit, at the first request that the device cannot serve.
class FittingSink final : public MemorySink {
 public:
  using MemorySink::MemorySink;
  void allocate(timeline::BlockId block, std::int64_t bytes, timeline::Tag tag,
                timeline::OperationId operation) override {
    MemorySink::allocate(block, bytes, tag, operation);
    if (allocator->out_of_memory()) throw DoesNotFit();
  }
};

std::int64_t weights_and_cache(const network::Network& network) {
  std::int64_t sum = 0;
  const auto add = [&](const network::Dims& shape, DType dtype) {
    sum = checked_add(sum, checked_mul(network::element_count(shape), network::size_of(dtype)));
  };
  for (const network::Parameter& p : network.parameters) add(p.shape, p.dtype);
  for (const network::Buffer& b : network.buffers) add(b.shape, b.dtype);
  return sum;
}

}  // namespace

NeedSearch::Built& NeedSearch::built_for(const Job& job) {
  const network::BuildOptions options = job.build_options();
  if (!built_ || built_->options != options) {
    built_.emplace(Built{options, std::nullopt, std::nullopt, false});
  }
  return *built_;
}

const network::Network& NeedSearch::network_of(const Job& job) {
  Built& built = built_for(job);
  if (!built.network) built.network = network::build_network(spec_, built.options);
  return *built.network;
}

const fold::FoldedNetwork* NeedSearch::folded_of(const Job& job) {
  Built& built = built_for(job);
  if (!std::exchange(built.tried_to_fold, true)) {
    built.folded = fold::FoldedNetwork::of(spec_, job);
  }
  return built.folded ? &*built.folded : nullptr;
}

const network::Network& NeedSearch::any_network_of(const Job& job) {
  const fold::FoldedNetwork* folded = folded_of(job);
  return folded == nullptr ? network_of(job) : folded->network();
}

WalkResult NeedSearch::walked(const Job& job, const WalkOptions& options, timeline::Sink& sink) {
  if (const fold::FoldedNetwork* folded = folded_of(job)) {
    if (auto result = fold::walk(*folded, job, options, sink)) return *std::move(result);
  }
  return walk(network_of(job), job, options, sink);
}

const std::vector<shard::UnitLayout>& NeedSearch::layouts_of(const Job& job) {
  StatesKey key{job.build_options(), job.ranks};
  const network::BuildOptions standard;
  key.options.batch = standard.batch;
  key.options.sequence = standard.sequence;
  key.options.context = standard.context;
  key.options.kernel = standard.kernel;
  key.options.dropout = standard.dropout;
  key.options.checkpoint = standard.checkpoint;
  key.options.loss_chunks = standard.loss_chunks;
  for (const auto& [known, layouts] : layouts_) {
    if (known == key) return layouts;
  }
  return layouts_.emplace_back(std::move(key), units_of(network_of(job), job.ranks).layouts).second;
}

std::string_view decided_by(const Job& job) {
  return job.backend == Backend::kCuda
             ? "reserved by the caching allocator, at the highest of the run"
             : "requested bytes at the peak of the timeline";
}

std::int64_t available_bytes(const Job& job) {
  check(job.device != nullptr, "a job without a device");
  return hardware::memory_budget(*job.device, job.reserve).available();
}

Need NeedSearch::requested_need(const Job& job) {
  // States exist from the start: the highest instant of the first step is no higher than that of a
  // steady one, and a search pays for one step instead of two.
  // Tensors of a micro-batch between the first and the last are those of the one before.
  const WalkOptions options{
      .steps = 1, .warm = true, .repeats = [] { return true; }, .memory = &memory_};
  timeline::PeakSink sink;
  const WalkResult result = walked(job, options, sink);
  Need need;
  need.bytes = need.requested = sink.peak(0).bytes;
  need.flops = flops_of(result.flops, job.accumulate);
  need.traffic = result.traffic.bytes();
  return need;
}

// Both steps, as a plan walks them: what the first one leaves in the allocator is part of the figure.
Need NeedSearch::reserved_need(const Job& job, MemorySink& sink) {
  // A folded walk cannot ask the allocator on its way.
  const bool asks = job.accumulate > 2;
  WalkOptions options{.memory = &memory_};
  if (asks) options.repeats = SameBlocks(sink.allocator->allocator());
  const WalkResult result =
      asks ? walk(network_of(job), job, options, sink) : walked(job, options, sink);
  Need need;
  need.bytes = sink.allocator->reserved_peak().bytes;
  for (std::int32_t step = 0; step < options.steps; ++step) {
    need.requested = std::max(need.requested, sink.peak.peak(step).bytes);
  }
  need.flops = flops_of(result.flops, job.accumulate);
  need.traffic = result.traffic.bytes();
  return need;
}

Need NeedSearch::decide(const Job& job, Asked asked, std::int64_t available) {
  if (asked != Asked::kNeed) {
    // Parameters, masters, gradients and moments are all alive when the optimizer steps.
    Need least;
    least.bytes = least.requested =
        job.infers() ? weights_and_cache(network_of(job))
                     : shard::resident(layouts_of(job), job.stage, job.arithmetic()).total();
    least.at_least = true;
    if (least.bytes > available) return least;
  }
  if (job.backend == Backend::kCpu || asked == Asked::kIfTensorsFit) return requested_need(job);
  if (asked == Asked::kIfFits) {
    FittingSink sink(any_network_of(job), job);
    return reserved_need(job, sink);
  }
  if (asked == Asked::kVerdict) {
    const Need need = requested_need(job);
    if (need.bytes > available) return need;
  }
  MemorySink sink(any_network_of(job), job);
  return reserved_need(job, sink);
}

std::optional<Need> NeedSearch::ask(const Job& job, Asked asked) {
  if (!validate(job, spec_)) return std::nullopt;
  ++walks_;
  try {
    const std::int64_t available = available_bytes(job);
    Need need = decide(job, asked, available);
    need.available = available;
    need.fits = need.bytes <= available;
    if (asked == Asked::kIfFits && !need.fits) return std::nullopt;
    return need;
  } catch (const DoesNotFit&) {
    return std::nullopt;
  } catch (const OverflowError&) {
    return std::nullopt;
  }
}

bool NeedSearch::may_fit(const Job& job) {
  const std::optional<Need> need = ask(job, Asked::kIfTensorsFit);
  return need && need->fits;
}

std::optional<Need> NeedSearch::of(const Job& job) { return ask(job, Asked::kNeed); }

std::optional<Need> NeedSearch::quick(const Job& job) { return ask(job, Asked::kVerdict); }

std::optional<Need> NeedSearch::if_fits(const Job& job) { return ask(job, Asked::kIfFits); }

}  // namespace plimsoll::plan
