// The part of the segment in which one rank's buffers lie. Only its rank allocates from it, so the
// list of free blocks is private; any thread of the rank may release.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/comm/shared/segment.hpp"

namespace plimsoll::comm {

class Arena : public std::enable_shared_from_this<Arena> {
 public:
  Arena(std::shared_ptr<Segment> segment, int rank);

  // Throws std::bad_alloc when the arena's address space is used up.
  Buffer allocate(std::int64_t bytes);
  // The offset of `bytes` bytes that are never released: control blocks of groups, which any member
  // may be the last to use.
  std::int64_t take(std::int64_t bytes);

  Segment& segment() const { return *segment_; }
  std::shared_ptr<Segment> shared_segment() const { return segment_; }

 private:
  void release(std::int64_t offset, std::int64_t bytes);

  const std::shared_ptr<Segment> segment_;
  std::mutex mutex_;
  std::map<std::int64_t, std::int64_t> free_;  // offset -> bytes, neighbours joined
};

}  // namespace plimsoll::comm
