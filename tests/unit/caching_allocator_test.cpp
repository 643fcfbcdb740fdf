// Worked examples for the model of the caching allocator, derived by hand from its documented
// constants: 512 bytes, 1 MiB, segments of 2 MiB and 20 MiB, 10 MiB, multiples of 2 MiB.
#include "plimsoll/plan/allocator/caching_allocator.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plimsoll/base/units.hpp"
#include "plimsoll/plan/allocator/allocator_sink.hpp"

namespace plimsoll::plan::allocator {
namespace {

using Block = CachingAllocator::Block;

// "0: 1024* 1024* 2095104 | 2097152: .." : segments with their pieces by address, used ones starred.
std::string layout(const CachingAllocator& allocator) {
  std::vector<std::string> segments;
  std::int64_t last = -1;
  for (const CachingAllocator::Piece& piece : allocator.pieces()) {
    if (piece.segment != last) segments.push_back(fmt::format("{}:", piece.segment));
    last = piece.segment;
    segments.back() += fmt::format(" {}{}", piece.bytes, piece.used ? "*" : "");
  }
  return fmt::format("{}", fmt::join(segments, " | "));
}

}  // namespace

TEST_CASE("caching allocator: requests are rounded up to 512 bytes") {
  CHECK(rounded_request(1) == 512);
  CHECK(rounded_request(512) == 512);
  CHECK(rounded_request(513) == 1024);
  CHECK(rounded_request(kMiB + 1) == kMiB + 512);
}

TEST_CASE("caching allocator: the segment that a request makes") {
  CHECK(segment_size(512) == 2 * kMiB);
  CHECK(segment_size(kMiB) == 2 * kMiB);
  CHECK(segment_size(kMiB + 512) == 20 * kMiB);
  CHECK(segment_size(10 * kMiB - 512) == 20 * kMiB);
  CHECK(segment_size(10 * kMiB) == 10 * kMiB);
  CHECK(segment_size(10 * kMiB + 512) == 12 * kMiB);
  CHECK(segment_size(21 * kMiB) == 22 * kMiB);
}

TEST_CASE("caching allocator: small requests are packed in one segment of 2 MiB") {
  CachingAllocator a;
  a.allocate(1000);
  a.allocate(600);
  CHECK(layout(a) == "0: 1024* 1024* 2095104");
  CHECK(a.requested() == 1600);
  CHECK(a.allocated() == 2048);
  CHECK(a.reserved() == 2 * kMiB);
}

TEST_CASE("caching allocator: the rest of a small block stays free from 512 bytes on") {
  CachingAllocator a;
  a.allocate(kMiB);
  a.allocate(kMiB - 512);
  CHECK(layout(a) == "0: 1048576* 1048064* 512");
  a.allocate(1);
  CHECK(layout(a) == "0: 1048576* 1048064* 512*");
  a.allocate(1);
  CHECK(a.reserved() == 4 * kMiB);
}

TEST_CASE("caching allocator: the rest of a large block stays free when it is above 1 MiB") {
  CachingAllocator exactly_one;
  exactly_one.allocate(11 * kMiB);  // of a segment of 12 MiB
  CHECK(layout(exactly_one) == "0: 12582912*");
  CHECK(exactly_one.allocated() == 12 * kMiB);
  CHECK(exactly_one.requested() == 11 * kMiB);
  CachingAllocator a_little_more;
  a_little_more.allocate(11 * kMiB - 512);
  CHECK(layout(a_little_more) == "0: 11533824* 1049088");
  CHECK(a_little_more.allocated() == 11 * kMiB - 512);
}

TEST_CASE("caching allocator: below 10 MiB large requests share segments of 20 MiB") {
  CachingAllocator a;
  a.allocate(9 * kMiB);
  a.allocate(9 * kMiB);
  CHECK(layout(a) == "0: 9437184* 9437184* 2097152");
  a.allocate(9 * kMiB);
  CHECK(a.reserved() == 40 * kMiB);
  a.allocate(10 * kMiB);  // fits the rest of the second segment
  CHECK(a.reserved() == 40 * kMiB);
  a.allocate(10 * kMiB);  // and one of its own
  CHECK(a.reserved() == 50 * kMiB);
}

TEST_CASE("caching allocator: two cuBLAS workspaces share a segment") {
  CachingAllocator a;
  a.allocate(8'519'680);
  a.allocate(8'519'680);
  CHECK(layout(a) == "0: 8519680* 8519680* 3932160");
  CHECK(a.allocated() == 17'039'360);  // 16.25 MiB
}

TEST_CASE("caching allocator: best fit, and of equal ones the lowest address") {
  CachingAllocator a;
  const Block thirty = a.allocate(30 * kMiB);
  const Block twenty = a.allocate(20 * kMiB);
  const Block twenty_six = a.allocate(26 * kMiB);
  const Block twenty_again = a.allocate(20 * kMiB);
  for (const Block block : {twenty_again, thirty, twenty_six, twenty}) a.release(block);
  CHECK(a.piece(a.allocate(24 * kMiB)).address == 50 * kMiB);  // of 26, the rest of 2 is free
  CHECK(a.piece(a.allocate(20 * kMiB)).address == 30 * kMiB);
  CHECK(a.piece(a.allocate(20 * kMiB)).address == 76 * kMiB);
  CHECK(a.piece(a.allocate(20 * kMiB)).address == 0);  // of 30
  CHECK(layout(a) ==
        "0: 20971520* 10485760 | 31457280: 20971520* | 52428800: 25165824* 2097152 | "
        "79691776: 20971520*");
}

TEST_CASE("caching allocator: a released block merges with free neighbours of its segment") {
  CachingAllocator a;
  const Block first = a.allocate(3 * kMiB);
  const Block second = a.allocate(3 * kMiB);
  const Block third = a.allocate(3 * kMiB);
  a.release(first);
  CHECK(layout(a) == "0: 3145728 3145728* 3145728* 11534336");
  a.release(third);
  CHECK(layout(a) == "0: 3145728 3145728* 14680064");
  a.release(second);
  CHECK(layout(a) == "0: 20971520");
  CHECK(a.allocated() == 0);
  CHECK(a.reserved() == 20 * kMiB);
}

TEST_CASE("caching allocator: what was released is used again") {
  CachingAllocator a;
  const Block block = a.allocate(64 * kMiB);
  const std::int64_t address = a.piece(block).address;
  a.release(block);
  CHECK(a.piece(a.allocate(64 * kMiB)).address == address);
  CHECK(a.reserved() == 64 * kMiB);
}

TEST_CASE("caching allocator: fragmentation: free bytes in small pieces do not serve a large one") {
  CachingAllocator a;
  std::vector<Block> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(a.allocate(2 * kMiB));
  for (std::size_t i = 0; i < blocks.size(); i += 2) a.release(blocks[i]);
  CHECK(a.reserved() == 20 * kMiB);
  CHECK(a.reserved() - a.allocated() == 10 * kMiB);
  a.allocate(3 * kMiB);
  CHECK(a.reserved() == 40 * kMiB);
  CHECK(a.reserved() - a.allocated() == 27 * kMiB);
}

TEST_CASE("caching allocator: small and large requests have pools of their own") {
  CachingAllocator a;
  a.release(a.allocate(1000));  // 2 MiB are free
  a.allocate(kMiB + 512);
  CHECK(a.reserved() == 22 * kMiB);
  a.allocate(1000);  // 18 MiB are free in the large pool, but these 2 are for it
  CHECK(a.reserved() == 22 * kMiB);
}

TEST_CASE("caching allocator: a full card gives free segments back once, then is out of memory") {
  CachingAllocator a(30 * kMiB);
  const Block twelve = a.allocate(12 * kMiB);
  CHECK(a.allocate(20 * kMiB) == CachingAllocator::kNone);
  CHECK(a.reserved() == 12 * kMiB);
  a.release(twelve);
  CHECK(a.allocate(20 * kMiB) != CachingAllocator::kNone);
  CHECK(a.reserved() == 20 * kMiB);
  a.lift_capacity();
  CHECK(a.allocate(20 * kMiB) != CachingAllocator::kNone);
}

TEST_CASE("caching allocator: a segment with one used piece cannot be given back") {
  CachingAllocator a(30 * kMiB);
  const Block first = a.allocate(3 * kMiB);
  a.allocate(3 * kMiB);
  a.release(first);
  CHECK(a.allocate(18 * kMiB) == CachingAllocator::kNone);
  CHECK(a.reserved() == 20 * kMiB);
}

TEST_CASE("allocator sink: figures by phase, library blocks at the first forward and backward") {
  using timeline::Phase;
  using timeline::Tag;
  AllocatorSink sink({{100}, {200, 300}});
  CHECK(LibraryBlocks{{100}, {200, 300}}.bytes() == 600);
  sink.begin_phase({Phase::kModel, 0, 0});
  sink.allocate(1, 600, Tag::kParameters, 0);
  sink.end_phase();
  for (const std::int32_t step : {0, 1}) {
    sink.begin_phase({Phase::kForward, step, 0});
    sink.allocate(2, 5 * kMiB, Tag::kActivations, 7);
    sink.release(2, 5 * kMiB, Tag::kActivations, 8);
    sink.end_phase();
    sink.begin_phase({Phase::kBackward, step, 0});
    sink.end_phase();
  }
  const std::vector<timeline::PhaseFigures>& phases = sink.phases();
  REQUIRE(phases.size() == 5);
  CHECK(phases[0].end == 1024);
  CHECK(phases[1].start == 1024);
  CHECK(phases[1].peak == 1536 + 5 * kMiB);
  CHECK(phases[1].end == 1536);
  CHECK(phases[2].end == 2560);
  CHECK(phases[3].peak == 2560 + 5 * kMiB);
  CHECK(sink.allocated_peak(1).bytes == 2560 + 5 * kMiB);
  CHECK(sink.allocated_peak(1).operation == 7);
  CHECK(sink.reserved_peak().bytes == 22 * kMiB);
  CHECK(sink.reserved_peak().phase == timeline::PhaseKey{Phase::kForward, 0, 0});
  CHECK(sink.unused_at_reserved_peak() == 22 * kMiB - 5 * kMiB - 1536);
  CHECK_FALSE(sink.out_of_memory().has_value());
}

TEST_CASE("allocator sink: the first failure is kept, the figures say what would be needed") {
  using timeline::Phase;
  using timeline::Tag;
  AllocatorSink sink({}, 40 * kMiB);
  sink.begin_phase({Phase::kForward, 0, 0});
  sink.allocate(1, 30 * kMiB, Tag::kActivations, 3);
  sink.allocate(2, 30 * kMiB, Tag::kActivations, 4);
  sink.allocate(3, 30 * kMiB, Tag::kActivations, 5);
  sink.end_phase();
  REQUIRE(sink.out_of_memory().has_value());
  CHECK(sink.out_of_memory()->operation == 4);
  CHECK(sink.out_of_memory()->request == 30 * kMiB);
  CHECK(sink.out_of_memory()->allocated == 30 * kMiB);
  CHECK(sink.out_of_memory()->reserved == 30 * kMiB);
  CHECK(sink.reserved_peak().bytes == 90 * kMiB);
}

}  // namespace plimsoll::plan::allocator
