// Sees every block that libtorch allocates and releases: on the CPU with its memory, on the meta
// device as a count without memory.
//
// The two allocators are installed when the program starts, before main, so that everything a
// program makes is seen. Bytes are what libtorch asked for, before any rounding. Zero-byte
// allocations are not blocks.
//
// Not seen: memory given to libtorch from outside (from_blob, mapped files; outside_block is seen), scratch of MKL and
// OpenMP, tensors made by static initialisers that ran earlier, devices other than CPU and meta.
//
// Everything here is thread-safe unless it says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "plimsoll/engine/torch.hpp"
#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::engine {

// One allocation that is alive.
struct Block {
  std::uint64_t id;    // counts from 0 in this process, over both devices
  std::int64_t bytes;  // positive
  timeline::Tag tag;
  bool seen;  // false: made in an UnseenScope
};

// Hears of blocks. Called on the thread that allocates or releases, one call at a time, and inside
// destructors: nothing may be thrown, and no tensor may be made, dropped or retagged.
class AllocationListener {
 public:
  virtual ~AllocationListener() = default;
  virtual void on_allocate(const Block& block) noexcept = 0;
  // Also for blocks made before the listener was set.
  virtual void on_release(const Block& block) noexcept = 0;
  // `block` already has its new tag.
  virtual void on_retag(const Block& block, timeline::Tag from) noexcept = 0;
};

// While it lives no thread makes, releases or retags a block, and the listener is not called: the
// figures below contain exactly the events that the listener was told of. The holder may not make or
// drop tensors. Does not nest.
class AllocationLock {
 public:
  AllocationLock();
  ~AllocationLock();
  AllocationLock(const AllocationLock&) = delete;
  AllocationLock& operator=(const AllocationLock&) = delete;

  // The one listener of the process, or null. Without one a block costs a header of 64 bytes, the
  // lock and two counters.
  void set_listener(AllocationListener* listener);
};

// Bytes of all blocks alive in this process. Without the lock, and while other threads allocate, a
// figure of the moment.
timeline::BytesByTag live_bytes();
std::int64_t total(const timeline::BytesByTag& bytes);

// How many blocks were made so far: the id of the next one.
std::uint64_t next_block_id();

// Memory from elsewhere (shared between ranks) as a block of this process: counted and tagged like one
// that libtorch allocates, given back when the last storage that uses it goes. `bytes` > 0.
at::DataPtr outside_block(std::shared_ptr<std::byte> memory, std::int64_t bytes);

// The block that holds the tensor's storage, null when none does (undefined tensor, memory from
// outside, copy-on-write storage, released parameter). Valid as long as the storage.
const Block* block_of(const at::Tensor& tensor);

// Changes what the block is counted as. False when the tensor has none. The storage must not be
// released by another thread meanwhile.
bool retag(const at::Tensor& tensor, timeline::Tag tag);

// Tags the blocks that this thread makes while it lives; the innermost one wins. Without one,
// blocks are activations. Other threads, OpenMP workers included, are not affected.
class TagScope {
 public:
  explicit TagScope(timeline::Tag tag);
  ~TagScope();
  TagScope(const TagScope&) = delete;
  TagScope& operator=(const TagScope&) = delete;

 private:
  timeline::Tag previous_;
};

// Blocks that this thread makes while it lives are not counted and never reported: stand-ins that
// have no counterpart in the run they stand for.
enum class Unseen { kNothing, kCpu, kEverything };
class UnseenScope {
 public:
  explicit UnseenScope(Unseen unseen);
  ~UnseenScope();
  UnseenScope(const UnseenScope&) = delete;
  UnseenScope& operator=(const UnseenScope&) = delete;

 private:
  Unseen previous_;
};

}  // namespace plimsoll::engine
