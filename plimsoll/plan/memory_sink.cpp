#include "plimsoll/plan/memory_sink.hpp"

#include "plimsoll/plan/memory.hpp"

namespace plimsoll::plan {

using timeline::BlockId;
using timeline::OperationId;
using timeline::Tag;

MemorySink::MemorySink(const network::Network& network, const Job& job) {
  if (job.backend != Backend::kCuda) return;
  allocator.emplace(library_blocks(network, job), reservable(job));
}

void MemorySink::begin_phase(timeline::PhaseKey key) {
  peak.begin_phase(key);
  if (allocator) allocator->begin_phase(key);
}

void MemorySink::end_phase() {
  peak.end_phase();
  if (allocator) allocator->end_phase();
}

void MemorySink::allocate(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) {
  peak.allocate(block, bytes, tag, operation);
  if (allocator) allocator->allocate(block, bytes, tag, operation);
}

void MemorySink::release(BlockId block, std::int64_t bytes, Tag tag, OperationId operation) {
  peak.release(block, bytes, tag, operation);
  if (allocator) allocator->release(block, bytes, tag, operation);
}

void MemorySink::retag(BlockId block, std::int64_t bytes, Tag from, Tag to) {
  peak.retag(block, bytes, from, to);
}

}  // namespace plimsoll::plan
