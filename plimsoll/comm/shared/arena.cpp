#include "plimsoll/comm/shared/arena.hpp"

#include <iterator>
#include <new>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/error.hpp"

namespace plimsoll::comm {
namespace {

// Whole pages for larger blocks: fewer sizes, so released blocks fit again.
std::int64_t rounded(std::int64_t bytes) {
  const std::int64_t unit = bytes < 4096 ? 64 : 4096;
  return checked_add(bytes, unit - 1) / unit * unit;
}

}  // namespace

Arena::Arena(std::shared_ptr<Segment> segment, int rank) : segment_(std::move(segment)) {
  const SegmentHeader& header = segment_->header();
  free_[header.arena_begin + header.arena_bytes * rank] = header.arena_bytes;
}

std::int64_t Arena::take(std::int64_t bytes) {
  const std::int64_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  // First fit: low addresses are used again, so pages that exist are preferred to new ones.
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    if (block->second < size) continue;
    const std::int64_t offset = block->first;
    const std::int64_t rest = block->second - size;
    free_.erase(block);
    if (rest > 0) free_[offset + size] = rest;
    return offset;
  }
  throw std::bad_alloc();
}

Buffer Arena::allocate(std::int64_t bytes) {
  check(bytes > 0, "an empty buffer");
  const std::int64_t size = rounded(bytes);
  const std::int64_t offset = take(bytes);
  const auto give_back = [arena = shared_from_this(), offset, size](std::byte*) {
    arena->release(offset, size);
  };
  return Buffer({segment_->at(offset), give_back}, bytes, false);
}

void Arena::release(std::int64_t offset, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto [block, inserted] = free_.emplace(offset, bytes);
  check(inserted, "a buffer released twice");
  const auto next = std::next(block);
  if (next != free_.end() && block->first + block->second == next->first) {
    block->second += next->second;
    free_.erase(next);
  }
  if (block == free_.begin()) return;
  const auto before = std::prev(block);
  if (before->first + before->second == block->first) {
    before->second += block->second;
    free_.erase(block);
  }
}

}  // namespace plimsoll::comm
