#include "plimsoll/engine/library/allocators.hpp"

#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include "plimsoll/engine/library/process_memory.hpp"

namespace plimsoll::engine {
namespace {

using timeline::Tag;

constexpr auto kTags = static_cast<std::size_t>(Tag::kCount);

// Constant-initialised and never destroyed: tensors die after static destructors, too.
//
// The lock makes an event and its figures one step: who holds it sees figures that contain exactly
// the events reported so far. It guards the writes below; the counters alone may be read without it.
constinit std::mutex events;
constinit AllocationListener* listener = nullptr;
constinit std::atomic<std::uint64_t> block_count{0};
constinit std::array<std::atomic<std::int64_t>, kTags> bytes_alive{};
constinit thread_local Tag current_tag = Tag::kActivations;
constinit thread_local Unseen current_unseen = Unseen::kNothing;

void add_alive(Tag tag, std::int64_t bytes) {
  bytes_alive[static_cast<std::size_t>(tag)].fetch_add(bytes, std::memory_order_relaxed);
}

Block open_block(std::size_t bytes, bool seen) {
  if (!seen) return {0, static_cast<std::int64_t>(bytes), current_tag, false};
  const std::lock_guard lock(events);
  const Block block{block_count.fetch_add(1, std::memory_order_relaxed),
                    static_cast<std::int64_t>(bytes), current_tag, true};
  add_alive(block.tag, block.bytes);
  if (listener != nullptr) listener->on_allocate(block);
  return block;
}

void close_block(const Block& block) {
  if (!block.seen) return;
  const std::lock_guard lock(events);
  add_alive(block.tag, -block.bytes);
  if (listener != nullptr) listener->on_release(block);
}

// [Note: Header]
// A DataPtr's context must be its data pointer: oneDNN asks for raw memory and gives back a bare
// pointer. So the block stands in front of the data, in a header that keeps libtorch's alignment.
constexpr std::size_t kHeaderBytes = 64;
static_assert(sizeof(Block) <= kHeaderBytes);

Block* header_of(void* data) {
  return std::launder(reinterpret_cast<Block*>(static_cast<std::byte*>(data) - kHeaderBytes));
}

class CpuAllocator final : public c10::Allocator {
 public:
  at::DataPtr allocate(std::size_t bytes) override {
    const at::Device cpu(at::kCPU);
    if (bytes == 0) return {nullptr, nullptr, &release, cpu};
    constexpr std::size_t most = std::numeric_limits<std::int64_t>::max() - kHeaderBytes;
    TORCH_CHECK(bytes <= most, "an allocation of ", bytes, " bytes is beyond 64-bit arithmetic");
    auto* memory = static_cast<std::byte*>(c10::alloc_cpu(bytes + kHeaderBytes));
    heap_reaches(memory + kHeaderBytes + bytes);
    new (memory) Block(open_block(bytes, current_unseen == Unseen::kNothing));
    std::byte* data = memory + kHeaderBytes;
    return {data, data, &release, cpu};
  }

  static void release(void* data) {
    if (data == nullptr) return;
    Block* block = header_of(data);
    close_block(*block);
    c10::free_cpu(block);
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// Meta tensors have no data; the context is the block.
class MetaAllocator final : public c10::Allocator {
 public:
  at::DataPtr allocate(std::size_t bytes) override {
    const at::Device meta(at::kMeta);
    if (bytes == 0) return {nullptr, nullptr, &release, meta};
    auto block = std::make_unique<Block>(open_block(bytes, current_unseen != Unseen::kEverything));
    return {nullptr, block.release(), &release, meta};
  }

  static void release(void* context) {
    if (context == nullptr) return;
    const std::unique_ptr<Block> block(static_cast<Block*>(context));
    close_block(*block);
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void*, const void*, std::size_t) const override {}
};

// Shared memory: the context holds the block and a share of the memory.
struct OutsideBlock {
  Block block;
  std::shared_ptr<std::byte> memory;

  static void release(void* context) {
    const std::unique_ptr<OutsideBlock> outside(static_cast<OutsideBlock*>(context));
    close_block(outside->block);
  }
};

Block* mutable_block_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  // Without checks, since a released parameter refuses every other access.
  const at::DataPtr& data = tensor.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
  void* context = data.get_context();
  if (context == nullptr) return nullptr;
  if (data.get_deleter() == &CpuAllocator::release) return header_of(context);
  if (data.get_deleter() == &MetaAllocator::release) return static_cast<Block*>(context);
  if (data.get_deleter() == &OutsideBlock::release) {
    return &static_cast<OutsideBlock*>(context)->block;
  }
  return nullptr;
}

bool install() {
  // Leaked, for the same reason as above. 255 wins over every allocator that libtorch registers.
  c10::SetCPUAllocator(new CpuAllocator, 255);
  c10::SetAllocator(c10::DeviceType::Meta, new MetaAllocator, 255);
  return true;
}

[[maybe_unused]] const bool installed = install();

}  // namespace

AllocationLock::AllocationLock() { events.lock(); }

AllocationLock::~AllocationLock() { events.unlock(); }

void AllocationLock::set_listener(AllocationListener* next) { listener = next; }

timeline::BytesByTag live_bytes() {
  timeline::BytesByTag bytes{};
  for (std::size_t tag = 0; tag < kTags; ++tag) {
    bytes[tag] = bytes_alive[tag].load(std::memory_order_relaxed);
  }
  return bytes;
}

std::int64_t total(const timeline::BytesByTag& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

std::uint64_t next_block_id() { return block_count.load(std::memory_order_relaxed); }

at::DataPtr outside_block(std::shared_ptr<std::byte> memory, std::int64_t bytes) {
  void* data = memory.get();
  const Block block =
      open_block(static_cast<std::size_t>(bytes), current_unseen == Unseen::kNothing);
  return {data, new OutsideBlock{block, std::move(memory)}, &OutsideBlock::release, at::kCPU};
}

const Block* block_of(const at::Tensor& tensor) { return mutable_block_of(tensor); }

bool retag(const at::Tensor& tensor, Tag tag) {
  Block* block = mutable_block_of(tensor);
  if (block == nullptr || !block->seen) return false;
  const std::lock_guard lock(events);
  const Tag from = std::exchange(block->tag, tag);
  if (from == tag) return true;
  add_alive(from, -block->bytes);
  add_alive(tag, block->bytes);
  if (listener != nullptr) listener->on_retag(*block, from);
  return true;
}

TagScope::TagScope(Tag tag) : previous_(std::exchange(current_tag, tag)) {}

TagScope::~TagScope() { current_tag = previous_; }

UnseenScope::UnseenScope(Unseen unseen) : previous_(std::exchange(current_unseen, unseen)) {}

UnseenScope::~UnseenScope() { current_unseen = previous_; }

}  // namespace plimsoll::engine
