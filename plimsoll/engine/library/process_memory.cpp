#include "plimsoll/engine/library/process_memory.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>

#ifdef __linux__
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace plimsoll::engine {
namespace {

constexpr std::uintptr_t kNever = std::numeric_limits<std::uintptr_t>::max();

// The address up to which huge pages were asked for.
constinit std::atomic<std::uintptr_t> asked{kNever};

bool switched_off() {
  const char* choice = std::getenv("PLIMSOLL_KEEP_MEMORY");
  return choice != nullptr && std::string_view(choice) == "0";
}

#if defined(__linux__) && defined(__GLIBC__)
constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
constexpr int kGrowth = 64 << 20;  // address space; its pages exist once they are written

std::uintptr_t heap_end() { return reinterpret_cast<std::uintptr_t>(sbrk(0)); }
#endif

}  // namespace

void keep_memory() {
#if defined(__linux__) && defined(__GLIBC__)
  if (switched_off() || asked.load() != kNever) return;
  // Blocks above 32 MiB would always be mapped and unmapped; without mappings they come from the heap.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, kGrowth);
  asked.store(heap_end());
#else
  static_cast<void>(&switched_off);
#endif
}

void heap_reaches(const std::byte* end) noexcept {
#if defined(__linux__) && defined(__GLIBC__)
  std::uintptr_t from = asked.load(std::memory_order_relaxed);
  if (reinterpret_cast<std::uintptr_t>(end) <= from) return;
  const std::uintptr_t to = heap_end();
  // Blocks beside the heap (of other threads) lie above it, too.
  if (to <= from || !asked.compare_exchange_strong(from, to)) return;
  from = from / kHugePage * kHugePage;
  // A wish: where it is refused pages are small.
  const int outer_errno = errno;
  madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
  errno = outer_errno;
#else
  static_cast<void>(end);
#endif
}

}  // namespace plimsoll::engine
