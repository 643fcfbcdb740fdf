// A model of PyTorch's caching allocator for CUDA: which bytes of the card belong to which block, and
// what the process has reserved. Source of all rules: c10/cuda/CUDACachingAllocator.cpp, defaults.
//
//   size     requests are rounded up to 512 bytes
//   pools    up to 1 MiB: small, packed in segments of 2 MiB; above: large
//   segments large requests below 10 MiB share segments of 20 MiB; others get one of their own,
//            rounded up to 2 MiB
//   fit      the smallest free block of the pool that is large enough; equal sizes: lowest address
//   split    the rest of a block stays free when it is 512 bytes (small) or above 1 MiB (large);
//            otherwise the request gets the whole block, and all of it counts as allocated
//   release  a block merges with free neighbours of its segment; segments are kept
//   full     when a new segment does not fit the card, segments without a used block are given back,
//            and the request is tried once more
//
// Not modelled: several streams, memory that other libraries take from the driver, settings of
// PYTORCH_CUDA_ALLOC_CONF, fragmentation of the driver itself. Addresses of segments grow in the order
// of their making, which is an assumption that decides only between free blocks of equal size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace plimsoll::plan::allocator {

inline constexpr std::int64_t kBlockMultiple = 512;
inline constexpr std::int64_t kSmallLimit = 1 << 20;           // largest small request
inline constexpr std::int64_t kSmallSegment = 2 << 20;         // holds small requests
inline constexpr std::int64_t kSharedSegment = 20 << 20;       // holds large requests below ..
inline constexpr std::int64_t kSharedSegmentLimit = 10 << 20;  // .. this
inline constexpr std::int64_t kSegmentMultiple = 2 << 20;      // of the others
inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

// A request in bytes as the allocator treats it, at least 512.
std::int64_t rounded_request(std::int64_t bytes);
// The segment that is made for a rounded request when no free block fits.
std::int64_t segment_size(std::int64_t rounded);

class CachingAllocator {
 public:
  using Block = std::uint32_t;
  static constexpr Block kNone = std::numeric_limits<Block>::max();

  // `capacity`: bytes that the process may reserve.
  explicit CachingAllocator(std::int64_t capacity = kUnlimited) : capacity_(capacity) {}

  // A block of at least `bytes` > 0, or kNone: out of memory, and nothing changed but that free
  // segments were given back.
  Block allocate(std::int64_t bytes);
  void release(Block block);

  void lift_capacity() { capacity_ = kUnlimited; }

  std::int64_t requested() const { return requested_; }  // sum of live requests
  std::int64_t allocated() const { return allocated_; }  // sum of live blocks
  std::int64_t reserved() const { return reserved_; }    // sum of segments

  // All of the card that is reserved, by address: for tests and for looking at fragmentation.
  struct Piece {
    std::int64_t segment = 0;  // address of its segment
    std::int64_t address = 0;
    std::int64_t bytes = 0;
    bool used = false;
    bool operator==(const Piece&) const = default;
  };
  std::vector<Piece> pieces() const;
  Piece piece(Block block) const;

 private:
  struct Record {
    std::int64_t segment = 0;
    std::int64_t address = 0;
    std::int64_t bytes = 0;
    std::int64_t request = 0;
    Block before = kNone;  // neighbours within the segment
    Block after = kNone;
    bool small = false;
    bool used = false;
  };
  struct Free {
    std::int64_t bytes;
    std::int64_t address;
    Block block;
    bool operator<(const Free& other) const {
      return bytes != other.bytes ? bytes < other.bytes : address < other.address;
    }
  };
  // Free blocks by size, then address. Few at a time: a sorted list is faster than a tree.
  class Pool {
   public:
    void insert(const Free& free) { list_.insert(place(free), free); }
    void erase(const Free& free) { list_.erase(place(free)); }
    // The smallest of at least `bytes`, taken out; kNone when there is none.
    Block take(std::int64_t bytes);
    template <class Gone>
    void erase_if(Gone&& gone) {
      std::erase_if(list_, gone);
    }

   private:
    std::vector<Free>::iterator place(const Free& free) {
      return std::lower_bound(list_.begin(), list_.end(), free);
    }
    std::vector<Free> list_;
  };

  Pool& pool(bool small) { return small ? small_ : large_; }
  Free free_entry(Block block) const {
    return {records_[block].bytes, records_[block].address, block};
  }
  Block make_record(const Record& record);
  Block make_segment(std::int64_t bytes, bool small);
  void give_back_free_segments();
  void give_back_free_segments(Pool& pool);
  void split(Block block, std::int64_t bytes);
  void merge_with_next(Block block);

  std::int64_t capacity_;
  std::int64_t requested_ = 0;
  std::int64_t allocated_ = 0;
  std::int64_t reserved_ = 0;
  std::int64_t next_address_ = 0;
  std::vector<Record> records_;
  std::vector<Block> unused_records_;
  Pool small_;
  Pool large_;
};

}  // namespace plimsoll::plan::allocator
