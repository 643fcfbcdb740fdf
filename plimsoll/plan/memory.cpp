#include "plimsoll/plan/memory.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/plan/walk.hpp"

namespace plimsoll::plan {
namespace {

using network::Evidence;
using timeline::Tag;

constexpr std::string_view kNoDevice = "no device was asked for";

bool is_linear_with_bias(const network::Operation& op) {
  const bool linear =
      op.kind == network::OpKind::kLinear || op.kind == network::OpKind::kKeptLinear;
  return linear && op.inputs.size() > 2;
}

std::int64_t alive(const timeline::Peak& peak, Tag tag) {
  return peak.alive[static_cast<std::size_t>(tag)];
}

MemoryLine known(std::string name, std::int64_t bytes, Evidence evidence, std::string source) {
  return {std::move(name), {bytes, ""}, evidence, std::move(source)};
}

MemoryLine unknown(std::string name, std::string_view reason) {
  return {std::move(name), {std::nullopt, std::string(reason)}, Evidence::kAssumed, ""};
}

std::string blas_text(const Job& job, const network::LibraryFacts& facts, std::int64_t bytes) {
  const std::int64_t handles = job.infers() ? 1 : facts.blas_handles;
  const std::int64_t blas = checked_mul(handles, facts.blas_workspace);
  std::string text = fmt::format("{} cuBLAS workspace{} of {}", handles, handles == 1 ? "" : "s",
                                 human(Bytes{facts.blas_workspace}));
  if (bytes > blas) text += fmt::format(", {} of cuBLASLt", human(Bytes{bytes - blas}));
  if (facts.blas_workspace_evidence == Evidence::kAssumed) text += "; 32 MiB each on Hopper";
  return text;
}

MemoryLine library_line(const network::Network& network, const Job& job) {
  const network::LibraryFacts facts = job.facts();
  if (facts.blas_handles == 0) {
    return unknown("library_workspace", "MKL, oneDNN and OpenMP allocate outside the allocator");
  }
  const std::int64_t bytes = library_blocks(network, job).bytes();
  return known("library_workspace", bytes, facts.blas_workspace_evidence,
               blas_text(job, facts, bytes));
}

MemoryLine context_line(const Job& job) {
  if (job.backend == Backend::kCpu) return unknown("context", "a CPU has no context");
  if (!job.device) return unknown("context", kNoDevice);
  const hardware::Figure<std::int64_t>& context = job.device->context;
  if (!context.value) return unknown("context", context.source);
  return known("context", *context.value, context.evidence, context.source);
}

void add_lines(Memory& memory, const network::Network& network, const Job& job,
               const timeline::Peak& peak) {
  const bool cpu = job.backend == Backend::kCpu;
  memory.lines.push_back(known("workspace", alive(peak, Tag::kWorkspace),
                               cpu ? Evidence::kMeasured : Evidence::kSource,
                               "scratch of kernels alive at the peak"));
  memory.lines.push_back(known("workspace_assumed", alive(peak, Tag::kAssumedWorkspace),
                               Evidence::kAssumed, "scratch whose size depends on the card"));
  memory.lines.push_back(library_line(network, job));
  memory.lines.push_back(context_line(job));
  for (const MemoryLine& line : memory.lines) {
    if (line.evidence != Evidence::kAssumed) continue;
    memory.assumed_bytes = checked_add(memory.assumed_bytes, line.size.bytes.value_or(0));
  }
}

Instant instant(const network::Network& network, const timeline::PhaseKey& phase,
                timeline::OperationId operation) {
  return {phase, operation_name(network, operation)};
}

void add_allocator(Memory& memory, const network::Network& network, std::int32_t step,
                   const allocator::AllocatorSink& sink) {
  const allocator::HighWater& allocated = sink.allocated_peak(step);
  const allocator::HighWater& reserved = sink.reserved_peak();
  memory.allocated.bytes = allocated.bytes;
  memory.reserved.bytes = reserved.bytes;
  memory.allocated_at = instant(network, allocated.phase, allocated.operation);
  memory.reserved_at = instant(network, reserved.phase, reserved.operation);
  memory.unused_at_reserved_peak = sink.unused_at_reserved_peak();
  if (const auto& failed = sink.out_of_memory()) {
    memory.out_of_memory = {instant(network, failed->phase, failed->operation), failed->request,
                            failed->allocated, failed->reserved};
  }
}

void add_device_used(Memory& memory) {
  const MaybeBytes& context = memory.lines.back().size;
  if (!memory.reserved.bytes) {
    memory.device_used.reason = "the rest of the process is not in the plan";
  } else if (!context.bytes) {
    memory.device_used.reason = context.reason;
  } else {
    memory.device_used.bytes = checked_add(*memory.reserved.bytes, *context.bytes);
  }
}

}  // namespace

std::int64_t reservable(const Job& job) {
  if (!job.device) return allocator::kUnlimited;
  return hardware::memory_budget(*job.device, job.reserve).available();
}

allocator::LibraryBlocks library_blocks(const network::Network& network, const Job& job) {
  const network::LibraryFacts facts = job.facts();
  allocator::LibraryBlocks blocks;
  if (facts.blas_handles == 0) return blocks;
  blocks.forward.push_back(facts.blas_workspace);
  if (facts.blas_handles > 1 && !job.infers()) blocks.backward.push_back(facts.blas_workspace);
  const bool biased =
      std::any_of(network.operations.begin(), network.operations.end(), is_linear_with_bias);
  if (!biased) return blocks;
  blocks.forward.push_back(facts.blas_lt_workspace);
  // Reruns of checkpointed blocks multiply in backward's thread.
  if (!network.regions.empty()) blocks.backward.push_back(facts.blas_lt_workspace);
  return blocks;
}

Memory make_memory(const network::Network& network, const Job& job, const timeline::Peak& steady,
                   std::int32_t steady_step, const allocator::AllocatorSink* allocator) {
  Memory memory;
  memory.requested = steady.bytes;
  if (allocator == nullptr) {
    memory.allocated.bytes = steady.bytes;
    memory.reserved.reason = "the CPU allocator keeps no reserve of its own";
  } else {
    add_allocator(memory, network, steady_step, *allocator);
  }
  add_lines(memory, network, job, steady);
  add_device_used(memory);
  return memory;
}

}  // namespace plimsoll::plan
