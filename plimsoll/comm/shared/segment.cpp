#include "plimsoll/comm/shared/segment.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <linux/futex.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/error.hpp"
#include "plimsoll/comm/shared/control.hpp"

namespace plimsoll::comm {
namespace {

constexpr std::uint64_t kMagic = 0x706c696d736f6c31U;  // changes with the layout
constexpr std::int64_t kPage = 4096;

std::int64_t page_up(std::int64_t bytes) { return checked_add(bytes, kPage - 1) / kPage * kPage; }

std::int64_t machine_memory() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

[[noreturn]] void throw_system(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::byte* map(std::int64_t bytes, int descriptor) {
  const int kind = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* base = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                    kind | MAP_NORESERVE, descriptor, 0);
  return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
}

template <std::size_t N>
void copy_text(char (&to)[N], const std::string& from) {
  const std::size_t length = std::min(from.size(), N - 1);
  if (length > 0) std::memcpy(to, from.data(), length);
  to[length] = 0;
}

}  // namespace

std::string describe_end(std::uint32_t end) {
  const auto value = static_cast<int>(end & 0xffffU);
  if ((end & End::kSignalled) != 0) {
    return fmt::format("killed by signal {} ({})", value, strsignal(value));
  }
  return fmt::format("ended with exit code {}", value);
}

std::shared_ptr<Segment> Segment::in_process(int ranks, std::int64_t arena_bytes) {
  return create(ranks, arena_bytes, false);
}

std::shared_ptr<Segment> Segment::in_memfd(int ranks, std::int64_t arena_bytes) {
  return create(ranks, arena_bytes, true);
}

std::shared_ptr<Segment> Segment::create(int ranks, std::int64_t arena_bytes, bool memfd) {
  check(ranks >= 1 && ranks <= kMaxRanks, "a number of ranks that the segment has no words for");
  const std::int64_t header = page_up(static_cast<std::int64_t>(sizeof(SegmentHeader)));
  const std::int64_t arena_begin = header + block_bytes(ranks);
  const std::int64_t arena = page_up(arena_bytes > 0 ? arena_bytes : machine_memory());
  const std::int64_t bytes = checked_add(arena_begin, checked_mul(arena, ranks));
  int descriptor = -1;
  if (memfd) {
    descriptor = memfd_create("plimsoll", MFD_CLOEXEC);
    if (descriptor < 0) throw_system("memfd_create");
    if (ftruncate(descriptor, bytes) != 0) throw_system("ftruncate of the shared memory");
  }
  std::byte* base = map(bytes, descriptor);
  if (base == nullptr) throw_system("mmap of the shared memory");
  auto* words = new (base) SegmentHeader;
  words->magic = kMagic;
  words->ranks = ranks;
  words->launcher = memfd ? static_cast<std::int32_t>(getpid()) : 0;
  words->bytes = bytes;
  words->arena_begin = arena_begin;
  words->arena_bytes = arena;
  for (int r = 0; r < ranks; ++r) new (base + header + control_offset(r)) MemberControl;
  return std::shared_ptr<Segment>(new Segment(base, bytes, descriptor));
}

std::shared_ptr<Segment> Segment::attach(int descriptor) {
  struct stat state {};
  if (fstat(descriptor, &state) != 0 || !S_ISREG(state.st_mode)) return nullptr;
  if (state.st_size < static_cast<off_t>(sizeof(SegmentHeader))) return nullptr;
  std::byte* base = map(state.st_size, descriptor);
  if (base == nullptr) return nullptr;
  std::shared_ptr<Segment> segment(new Segment(base, state.st_size, descriptor));
  const SegmentHeader& header = segment->header();
  return header.magic == kMagic && header.bytes == state.st_size ? segment : nullptr;
}

Segment::~Segment() {
  munmap(base_, static_cast<std::size_t>(bytes_));
  if (descriptor_ >= 0) close(descriptor_);
}

std::int64_t Segment::offset_of(const void* data, std::int64_t bytes) const {
  // Compared as numbers: pointers of different objects have no order.
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const auto base = reinterpret_cast<std::uintptr_t>(base_);
  if (address < base || address - base > static_cast<std::uintptr_t>(bytes_ - bytes)) {
    return kOutside;
  }
  return static_cast<std::int64_t>(address - base);
}

std::int64_t Segment::world_block() const {
  return page_up(static_cast<std::int64_t>(sizeof(SegmentHeader)));
}

void Segment::fail(const Cause& cause) const noexcept {
  FirstCause& first = header().cause;
  std::uint32_t none = 0;
  if (!first.state.compare_exchange_strong(none, 1)) return;
  first.kind = cause.kind;
  first.rank = cause.rank;
  first.reporter = cause.reporter;
  first.step = cause.step;
  copy_text(first.operation, cause.operation);
  copy_text(first.unit, cause.unit);
  copy_text(first.text, cause.text);
  first.state.store(2, std::memory_order_release);
  ring_all();
}

Cause Segment::cause() const {
  const FirstCause& first = header().cause;
  // Its writer may have died in the middle.
  for (int i = 0; i < 200 && first.state.load(std::memory_order_acquire) != 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Cause cause;
  if (first.state.load(std::memory_order_acquire) != 2) {
    cause.text = "a rank died while it said what was wrong";
    return cause;
  }
  cause.kind = first.kind;
  cause.rank = first.rank;
  cause.reporter = first.reporter;
  cause.step = first.step;
  cause.operation = first.operation;
  cause.unit = first.unit;
  cause.text = first.text;
  return cause;
}

void Segment::ring(int rank) const noexcept {
  RankWord& word = header().rank[rank];
  if (word.asleep.load() == 0) return;
  word.doorbell.fetch_add(1);
  syscall(SYS_futex, &word.doorbell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Segment::ring_all() const noexcept {
  for (int r = 0; r < ranks(); ++r) ring(r);
}

}  // namespace plimsoll::comm
