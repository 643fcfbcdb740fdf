// What a run costs in the caching allocator: takes the events of a walk and allocates and releases
// in a CachingAllocator. Per rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plimsoll/plan/allocator/caching_allocator.hpp"
#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::plan::allocator {

// Blocks that libraries take when forward and backward first run, and keep to the end. They belong to
// no event of a walk.
struct LibraryBlocks {
  std::vector<std::int64_t> forward;
  std::vector<std::int64_t> backward;
  std::int64_t bytes() const;
};

// The highest instant of a figure.
struct HighWater {
  std::int64_t bytes = 0;
  timeline::PhaseKey phase;
  timeline::OperationId operation = 0;
};

// The first request that the card could not serve, even after free segments were given back.
struct OutOfMemory {
  timeline::PhaseKey phase;
  timeline::OperationId operation = 0;
  std::int64_t request = 0;
  std::int64_t allocated = 0;  // at that instant
  std::int64_t reserved = 0;
};

class AllocatorSink final : public timeline::Sink {
 public:
  // After the first failure the walk goes on without a limit: the peaks say what would be needed.
  explicit AllocatorSink(LibraryBlocks libraries = {}, std::int64_t capacity = kUnlimited)
      : allocator_(capacity), libraries_(std::move(libraries)) {}

  void begin_phase(timeline::PhaseKey key) override;
  void end_phase() override;
  void allocate(timeline::BlockId block, std::int64_t bytes, timeline::Tag tag,
                timeline::OperationId operation) override;
  void release(timeline::BlockId block, std::int64_t bytes, timeline::Tag tag,
               timeline::OperationId operation) override;
  void retag(timeline::BlockId, std::int64_t, timeline::Tag, timeline::Tag) override {}

  const CachingAllocator& allocator() const { return allocator_; }
  // Allocated bytes at the borders and the highest instant of each phase; library blocks included.
  const std::vector<timeline::PhaseFigures>& phases() const { return phases_; }
  // Highest allocated bytes within the phases of `step`.
  const HighWater& allocated_peak(std::int32_t step) const {
    return allocated_.at(static_cast<std::size_t>(step));
  }
  // Highest reserved bytes of the whole run: what was reserved stays reserved.
  const HighWater& reserved_peak() const { return reserved_; }
  // At that instant: reserved bytes that no block used.
  std::int64_t unused_at_reserved_peak() const { return unused_; }
  const std::optional<OutOfMemory>& out_of_memory() const { return out_of_memory_; }

 private:
  CachingAllocator::Block take(std::int64_t bytes, timeline::OperationId operation);
  void take_libraries(std::vector<std::int64_t>& blocks);
  void note(timeline::OperationId operation);

  CachingAllocator allocator_;
  LibraryBlocks libraries_;                      // those not yet taken
  std::vector<CachingAllocator::Block> blocks_;  // by event block
  std::vector<timeline::PhaseFigures> phases_;
  std::vector<HighWater> allocated_;  // by step
  HighWater reserved_;
  std::int64_t unused_ = 0;
  timeline::PhaseKey phase_;
  bool open_ = false;
  std::optional<OutOfMemory> out_of_memory_;
};

}  // namespace plimsoll::plan::allocator
