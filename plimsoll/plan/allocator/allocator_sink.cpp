#include "plimsoll/plan/allocator/allocator_sink.hpp"

#include <algorithm>
#include <numeric>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::plan::allocator {

using timeline::BlockId;
using timeline::OperationId;
using timeline::Phase;

std::int64_t LibraryBlocks::bytes() const {
  const auto sum = [](const std::vector<std::int64_t>& blocks) {
    return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}, checked_add);
  };
  return checked_add(sum(forward), sum(backward));
}

void AllocatorSink::begin_phase(timeline::PhaseKey key) {
  phase_ = key;
  open_ = true;
  const auto step = static_cast<std::size_t>(key.step);
  if (allocated_.size() <= step) allocated_.resize(step + 1);
  const std::int64_t now = allocator_.allocated();
  phases_.push_back({key, now, now, now});
  note(0);
  if (key.phase == Phase::kForward) take_libraries(libraries_.forward);
  if (key.phase == Phase::kBackward) take_libraries(libraries_.backward);
}

void AllocatorSink::end_phase() {
  phases_.back().end = allocator_.allocated();
  open_ = false;
}

void AllocatorSink::take_libraries(std::vector<std::int64_t>& blocks) {
  for (const std::int64_t bytes : blocks) take(bytes, 0);
  blocks.clear();
}

CachingAllocator::Block AllocatorSink::take(std::int64_t bytes, OperationId operation) {
  CachingAllocator::Block block = allocator_.allocate(bytes);
  if (block == CachingAllocator::kNone) {
    out_of_memory_ = {phase_, operation, bytes, allocator_.allocated(), allocator_.reserved()};
    allocator_.lift_capacity();
    block = allocator_.allocate(bytes);
  }
  note(operation);
  return block;
}

void AllocatorSink::note(OperationId operation) {
  const std::int64_t allocated = allocator_.allocated();
  if (allocator_.reserved() > reserved_.bytes) {
    reserved_ = {allocator_.reserved(), phase_, operation};
    unused_ = allocator_.reserved() - allocated;
  }
  if (!open_) return;
  phases_.back().peak = std::max(phases_.back().peak, allocated);
  HighWater& step = allocated_[static_cast<std::size_t>(phase_.step)];
  if (allocated > step.bytes) step = {allocated, phase_, operation};
}

void AllocatorSink::allocate(BlockId block, std::int64_t bytes, timeline::Tag,
                             OperationId operation) {
  if (blocks_.size() <= block) blocks_.resize(block + block / 2 + 1, CachingAllocator::kNone);
  blocks_[block] = take(bytes, operation);
}

void AllocatorSink::release(BlockId block, std::int64_t, timeline::Tag, OperationId) {
  allocator_.release(blocks_.at(block));
}

}  // namespace plimsoll::plan::allocator
