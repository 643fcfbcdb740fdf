// What holds for the caching allocator whatever is allocated and released, and against a second
// implementation that searches all pieces.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/base/units.hpp"
#include "plimsoll/plan/allocator/caching_allocator.hpp"
#include "plimsoll/plan/memory.hpp"
#include "plimsoll/plan/plan.hpp"

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

using plan::allocator::CachingAllocator;
using Piece = CachingAllocator::Piece;

std::int64_t random_bytes(Dice& dice) {
  switch (dice.between(0, 4)) {
    case 0:
      return dice.between(1, 2000);
    case 1:
      return dice.between(1, kMiB);
    case 2:
      return dice.between(kMiB, 10 * kMiB);
    case 3:
      return dice.pick<std::int64_t>({kMiB, kMiB + 1, 10 * kMiB - 1, 10 * kMiB, 20 * kMiB});
    default:
      return dice.between(10 * kMiB, 100 * kMiB);
  }
}

std::int64_t segment_bytes(const std::vector<Piece>& pieces, std::int64_t segment) {
  std::int64_t bytes = 0;
  for (const Piece& piece : pieces) {
    if (piece.segment == segment) bytes += piece.bytes;
  }
  return bytes;
}

// The address that best fit takes among all pieces: segments of 2 MiB are the small pool.
std::optional<std::int64_t> best_fit(const std::vector<Piece>& pieces, std::int64_t request) {
  const std::int64_t bytes = (request + 511) / 512 * 512;
  const bool small = bytes <= kMiB;
  const Piece* best = nullptr;
  for (const Piece& piece : pieces) {
    if (piece.used || piece.bytes < bytes) continue;
    if ((segment_bytes(pieces, piece.segment) == 2 * kMiB) != small) continue;
    if (best == nullptr || piece.bytes < best->bytes) best = &piece;
  }
  return best == nullptr ? std::nullopt : std::optional(best->address);
}

void check_pieces(const CachingAllocator& a) {
  const std::vector<Piece> pieces = a.pieces();
  std::int64_t used = 0;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    REQUIRE(pieces[i].bytes > 0);
    REQUIRE(pieces[i].bytes % 512 == 0);
    all += pieces[i].bytes;
    if (pieces[i].used) used += pieces[i].bytes;
    if (i == 0) continue;
    const Piece& before = pieces[i - 1];
    REQUIRE(before.address + before.bytes <= pieces[i].address);  // never two over one address
    if (before.segment != pieces[i].segment) continue;
    REQUIRE(before.address + before.bytes == pieces[i].address);  // no holes
    REQUIRE((before.used || pieces[i].used));                     // free neighbours are merged
  }
  REQUIRE(used == a.allocated());
  REQUIRE(all == a.reserved());
  REQUIRE(a.requested() <= a.allocated());
  REQUIRE(a.allocated() <= a.reserved());
}

void check_whole_segments(const CachingAllocator& a) {
  const std::vector<Piece> pieces = a.pieces();
  for (const Piece& piece : pieces) {
    REQUIRE_FALSE(piece.used);
    REQUIRE(piece.bytes == segment_bytes(pieces, piece.segment));
  }
  REQUIRE(a.allocated() == 0);
  REQUIRE(a.requested() == 0);
}

void random_run(Dice& dice) {
  CachingAllocator a;
  std::vector<CachingAllocator::Block> alive;
  for (int i = 0; i < 120; ++i) {
    if (!alive.empty() && dice.between(0, 99) < 45) {
      const std::size_t at =
          static_cast<std::size_t>(dice.between(0, static_cast<std::int64_t>(alive.size()) - 1));
      a.release(alive[at]);
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const std::int64_t bytes = random_bytes(dice);
      const std::int64_t reserved = a.reserved();
      const std::optional<std::int64_t> expected = best_fit(a.pieces(), bytes);
      alive.push_back(a.allocate(bytes));
      REQUIRE(a.piece(alive.back()).bytes >= bytes);
      REQUIRE((a.reserved() == reserved) == expected.has_value());
      if (expected) REQUIRE(a.piece(alive.back()).address == *expected);
    }
    check_pieces(a);
  }
  for (const CachingAllocator::Block block : alive) a.release(block);
  check_whole_segments(a);
}

}  // namespace

TEST_CASE("caching allocator: 500 random runs keep its laws and take the best fit") {
  Dice dice(20261130);
  for (int run = 0; run < 500; ++run) {
    CAPTURE(run);
    random_run(dice);
  }
}

TEST_CASE("caching allocator: with a capacity, reserved bytes never exceed it") {
  Dice dice(7);
  for (int run = 0; run < 200; ++run) {
    const std::int64_t capacity = dice.between(30, 300) * kMiB;
    CachingAllocator a(capacity);
    std::vector<CachingAllocator::Block> alive;
    int failures = 0;
    for (int i = 0; i < 80; ++i) {
      const CachingAllocator::Block block = a.allocate(random_bytes(dice));
      if (block != CachingAllocator::kNone) {
        alive.push_back(block);
      } else {
        ++failures;
        if (alive.empty()) continue;
        a.release(alive.back());
        alive.pop_back();
      }
      REQUIRE(a.reserved() <= capacity);
      check_pieces(a);
    }
    CHECK(failures > 0);
  }
}

TEST_CASE("memory of 1,000 random jobs: requested <= allocated <= reserved, lines add up") {
  for_each_random_job(1000, [](const RandomJob& random) {
    const auto made = plan::make_plan(random.spec, random.job);
    REQUIRE(made.has_value());
    const plan::Memory& memory = made->memory;
    CHECK(memory.requested == made->steady.peak.bytes);
    std::int64_t assumed = 0;
    for (const plan::MemoryLine& line : memory.lines) {
      if (line.evidence == network::Evidence::kAssumed) assumed += line.size.bytes.value_or(0);
    }
    CHECK(memory.assumed_bytes == assumed);
    CHECK_FALSE(memory.device_used.bytes.has_value());
    REQUIRE(memory.allocated.bytes.has_value());
    if (random.job.backend == network::Backend::kCpu) {
      CHECK(*memory.allocated.bytes == memory.requested);
      CHECK_FALSE(memory.reserved.bytes.has_value());
      CHECK_FALSE(memory.reserved.reason.empty());
      return;
    }
    REQUIRE(memory.reserved.bytes.has_value());
    const std::int64_t libraries = plan::library_blocks(random.network(), random.job).bytes();
    CHECK(*memory.allocated.bytes >= memory.requested + libraries);
    CHECK(*memory.reserved.bytes >= *memory.allocated.bytes);
    CHECK(*memory.reserved.bytes % (2 * kMiB) == 0);
  });
}

}  // namespace plimsoll::test
