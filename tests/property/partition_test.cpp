// Partition arithmetic on 5,000 random arrays: ownership, padding, remap, pieces.
#include "plimsoll/shard/partition.hpp"

#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/base/error.hpp"

#include "tests/property/dice.hpp"

namespace plimsoll::test {
namespace {

using shard::FlatOrder;
using shard::Partition;
using shard::Range;
using shard::Transfer;

constexpr int kCases = 5000;
constexpr std::uint64_t kSeed = 20260311;

// Small arrays, where every element can be looked at, and 0, 1 and fewer elements than ranks.
std::int64_t random_elements(Dice& dice) {
  return dice.one_in(10) ? dice.between(0, 3) : dice.between(0, 300);
}
std::int32_t random_ranks(Dice& dice) { return static_cast<std::int32_t>(dice.between(1, 17)); }

std::vector<std::int64_t> random_arrays(Dice& dice) {
  std::vector<std::int64_t> arrays;
  for (std::int64_t i = dice.between(0, 6); i > 0; --i) arrays.push_back(random_elements(dice));
  return arrays;
}

template <class Case>
void for_each_case(Case&& one) {
  Dice dice(kSeed);
  for (int i = 0; i < kCases; ++i) {
    CAPTURE(i);
    one(dice);
  }
}

}  // namespace

TEST_CASE("5,000 partitions: every element has one owner, slots are equal, padding is below R") {
  for_each_case([](Dice& dice) {
    const Partition partition(random_elements(dice), random_ranks(dice));
    const std::int32_t ranks = partition.ranks();
    CHECK(partition.padding() >= 0);
    CHECK(partition.padding() < ranks);
    CHECK(partition.padded() == partition.elements() + partition.padding());
    std::vector<int> owners(static_cast<std::size_t>(partition.elements()), 0);
    std::int64_t end_of_last = 0;
    for (std::int32_t r = 0; r < ranks; ++r) {
      const Range range = partition.range(r);
      const Range slot = partition.slot(r);
      CHECK(slot.size() == partition.chunk());
      CHECK(slot.begin == end_of_last);
      end_of_last = slot.end;
      const Range real = shard::intersection(slot, {0, partition.elements()});
      CHECK(range.size() == real.size());
      if (!range.empty()) CHECK(range == real);
      for (std::int64_t e = range.begin; e < range.end; ++e) {
        ++owners[static_cast<std::size_t>(e)];
        CHECK(partition.owner(e) == r);
      }
    }
    CHECK(end_of_last == partition.padded());
    CHECK(owners == std::vector<int>(owners.size(), 1));
  });
}

TEST_CASE("5,000 remaps R to R': every element goes once, from its old owner to its new one") {
  for_each_case([](Dice& dice) {
    const std::int64_t elements = random_elements(dice);
    const Partition before(elements, random_ranks(dice));
    const Partition after(elements, random_ranks(dice));
    std::int64_t at = 0;
    for (const Transfer& t : shard::remap(before, after)) {
      CHECK(t.range.begin == at);
      CHECK(!t.range.empty());
      CHECK(shard::intersection(before.range(t.from), t.range) == t.range);
      CHECK(shard::intersection(after.range(t.to), t.range) == t.range);
      at = t.range.end;
    }
    CHECK(at == elements);
  });
}

TEST_CASE("5,000 remaps: there and back moves every element home") {
  for_each_case([](Dice& dice) {
    const std::int64_t elements = random_elements(dice);
    const Partition here(elements, random_ranks(dice));
    const Partition there(elements, random_ranks(dice));
    const std::vector<Transfer> out = shard::remap(here, there);
    const std::vector<Transfer> back = shard::remap(there, here);
    REQUIRE(out.size() == back.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      CHECK(back[i] == Transfer{out[i].to, out[i].from, out[i].range});
    }
  });
}

TEST_CASE("5,000 flat orders: the pieces of all ranks are all arrays, once and in order") {
  for_each_case([](Dice& dice) {
    const std::vector<std::int64_t> arrays = random_arrays(dice);
    const FlatOrder order(arrays);
    const Partition partition(order.elements(), random_ranks(dice));
    std::vector<std::int64_t> seen(arrays.size(), 0);
    std::int64_t flat = 0;
    for (std::int32_t r = 0; r < partition.ranks(); ++r) {
      // Padding belongs to no piece.
      CHECK(order.pieces(partition.slot(r)) == order.pieces(partition.range(r)));
      for (const FlatOrder::Piece& piece : order.pieces(partition.slot(r))) {
        CHECK(piece.in_flat.begin == flat);
        CHECK(piece.in_array.begin == seen[piece.array]);
        CHECK(piece.in_array.size() == piece.in_flat.size());
        CHECK(piece.in_flat.begin == order.range(piece.array).begin + piece.in_array.begin);
        seen[piece.array] = piece.in_array.end;
        flat = piece.in_flat.end;
      }
    }
    CHECK(seen == arrays);
    CHECK(flat == order.elements());
  });
}

TEST_CASE("partitions of sizes near the end of 64 bits are exact or refused") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(Partition(kMost - 6, 1).padded() == kMost - 6);
  CHECK(Partition(kMost, 7).padding() == 0);  // 2^63 - 1 is a multiple of 7
  CHECK_THROWS_AS(Partition(kMost, 2), OverflowError);
  CHECK_THROWS_AS(FlatOrder({kMost, 1}), OverflowError);
  CHECK_THROWS_AS(Partition(-1, 1), InternalError);
  CHECK_THROWS_AS(Partition(1, 0), InternalError);
  CHECK_THROWS_AS(shard::remap(Partition(3, 1), Partition(4, 1)), InternalError);
}

}  // namespace plimsoll::test
