#include "plimsoll/plan/allocator/caching_allocator.hpp"

#include "plimsoll/base/checked.hpp"

namespace plimsoll::plan::allocator {

std::int64_t rounded_request(std::int64_t bytes) { return rounded_up(bytes, kBlockMultiple); }

std::int64_t segment_size(std::int64_t rounded) {
  if (rounded <= kSmallLimit) return kSmallSegment;
  if (rounded < kSharedSegmentLimit) return kSharedSegment;
  return rounded_up(rounded, kSegmentMultiple);
}

CachingAllocator::Block CachingAllocator::make_record(const Record& record) {
  if (unused_records_.empty()) {
    records_.push_back(record);
    return static_cast<Block>(records_.size() - 1);
  }
  const Block block = unused_records_.back();
  unused_records_.pop_back();
  records_[block] = record;
  return block;
}

CachingAllocator::Block CachingAllocator::Pool::take(std::int64_t bytes) {
  const auto best = place({bytes, 0, 0});
  if (best == list_.end()) return kNone;
  const Block block = best->block;
  list_.erase(best);
  return block;
}

CachingAllocator::Block CachingAllocator::make_segment(std::int64_t bytes, bool small) {
  const std::int64_t size = segment_size(bytes);
  if (size > capacity_ - reserved_) give_back_free_segments();
  if (size > capacity_ - reserved_) return kNone;
  Record record;
  record.segment = record.address = next_address_;
  record.bytes = size;
  record.small = small;
  next_address_ = checked_add(next_address_, size);
  reserved_ = checked_add(reserved_, size);
  return make_record(record);
}

void CachingAllocator::give_back_free_segments() {
  give_back_free_segments(small_);
  give_back_free_segments(large_);
}

void CachingAllocator::give_back_free_segments(Pool& pool) {
  pool.erase_if([this](const Free& free) {
    const Record& record = records_[free.block];
    const bool whole = record.before == kNone && record.after == kNone;
    if (whole) {
      reserved_ -= record.bytes;
      unused_records_.push_back(free.block);
    }
    return whole;
  });
}

// The request keeps the lower part.
void CachingAllocator::split(Block block, std::int64_t bytes) {
  Record rest = records_[block];
  const std::int64_t left = rest.bytes - bytes;
  if (rest.small ? left < kBlockMultiple : left <= kSmallLimit) return;
  rest.address += bytes;
  rest.bytes = left;
  rest.before = block;
  const Block upper = make_record(rest);
  if (rest.after != kNone) records_[rest.after].before = upper;
  records_[block].after = upper;
  records_[block].bytes = bytes;
  pool(rest.small).insert(free_entry(upper));
}

CachingAllocator::Block CachingAllocator::allocate(std::int64_t bytes) {
  const std::int64_t rounded = rounded_request(bytes);
  const bool small = rounded <= kSmallLimit;
  Block block = pool(small).take(rounded);
  if (block == kNone) block = make_segment(rounded, small);
  if (block == kNone) return kNone;
  split(block, rounded);
  Record& record = records_[block];
  record.used = true;
  record.request = bytes;
  requested_ += bytes;
  allocated_ += record.bytes;
  return block;
}

// `block` grows over its neighbour above, which is free.
void CachingAllocator::merge_with_next(Block block) {
  Record& record = records_[block];
  const Block upper = record.after;
  pool(record.small).erase(free_entry(upper));
  record.bytes += records_[upper].bytes;
  record.after = records_[upper].after;
  if (record.after != kNone) records_[record.after].before = block;
  unused_records_.push_back(upper);
}

void CachingAllocator::release(Block block) {
  Record& record = records_[block];
  check(record.used, "a block released twice");
  record.used = false;
  requested_ -= record.request;
  allocated_ -= record.bytes;
  if (record.after != kNone && !records_[record.after].used) merge_with_next(block);
  const Block lower = record.before;
  if (lower == kNone || records_[lower].used) {
    pool(record.small).insert(free_entry(block));
    return;
  }
  Pool& from = pool(record.small);
  from.erase(free_entry(lower));
  records_[lower].bytes += record.bytes;
  records_[lower].after = record.after;
  if (record.after != kNone) records_[record.after].before = lower;
  unused_records_.push_back(block);
  from.insert(free_entry(lower));
}

CachingAllocator::Piece CachingAllocator::piece(Block block) const {
  const Record& record = records_[block];
  return {record.segment, record.address, record.bytes, record.used};
}

std::vector<CachingAllocator::Piece> CachingAllocator::pieces() const {
  std::vector<bool> gone(records_.size());
  for (const Block block : unused_records_) gone[block] = true;
  std::vector<Piece> all;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (!gone[i]) all.push_back(piece(static_cast<Block>(i)));
  }
  std::sort(all.begin(), all.end(),
            [](const Piece& a, const Piece& b) { return a.address < b.address; });
  return all;
}

}  // namespace plimsoll::plan::allocator
