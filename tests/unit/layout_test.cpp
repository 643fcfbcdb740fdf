// The three orders of a unit on real bytes: what a gather in place would leave behind is what every
// parameter holds.
#include "plimsoll/shard/layout.hpp"

#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "tests/property/dice.hpp"

namespace plimsoll::test {
namespace {

using shard::Group;
using shard::Move;
using shard::Parameter;
using shard::Range;
using shard::Unit;
using shard::UnitLayout;

constexpr int kLayouts = 5000;

struct RandomModel {
  std::vector<Parameter> parameters;
  Unit unit;
};

RandomModel random_model(Dice& dice) {
  RandomModel model;
  for (std::int64_t i = dice.between(0, 7); i > 0; --i) {
    Parameter p;
    p.name = "p" + std::to_string(i);
    p.shape = {dice.one_in(6) ? dice.between(0, 1) : dice.between(1, 40)};
    p.type = {static_cast<std::int32_t>(dice.between(0, 1)), 0};
    p.type.bytes = p.type.code == 0 ? 4 : 2;
    p.trainable = !dice.one_in(4);
    model.unit.parameters.push_back(model.parameters.size());
    model.parameters.push_back(p);
  }
  return model;
}

using Bytes = std::vector<unsigned char>;

// Byte b of flat element e, the same for everybody.
unsigned char content(std::int64_t element, std::int64_t byte) {
  return static_cast<unsigned char>(element * 7 + byte * 31 + 1);
}

void move(Bytes& storage, const Group& group, const std::vector<Move>& moves) {
  for (const Move& m : moves) {
    unsigned char* base = storage.data() + group.offset();
    REQUIRE(m.from + m.bytes <= group.bytes());
    REQUIRE(m.to + m.bytes <= group.bytes());
    std::memmove(base + m.to, base + m.from, static_cast<std::size_t>(m.bytes));
  }
}

// All elements in packed order, as the collective leaves them.
void write_packed(Bytes& storage, const Group& group, const Range& elements) {
  for (std::int64_t e = elements.begin; e < elements.end; ++e) {
    for (std::int64_t b = 0; b < group.type().bytes; ++b) {
      storage[static_cast<std::size_t>(group.offset() + e * group.type().bytes + b)] =
          content(e, b);
    }
  }
}

// The first element of the group that is not where forward reads it, or -1.
std::int64_t first_misplaced(const Bytes& storage, const Group& group) {
  for (std::size_t i = 0; i < group.parameters().size(); ++i) {
    const Range range = group.flat().range(i);
    for (std::int64_t e = range.begin; e < range.end; ++e) {
      const std::int64_t at = group.place(i) + (e - range.begin) * group.type().bytes;
      for (std::int64_t b = 0; b < group.type().bytes; ++b) {
        if (storage[static_cast<std::size_t>(at + b)] != content(e, b)) return e;
      }
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("5,000 units: groups lie apart, parameters at multiples of 64 bytes, padding below R") {
  Dice dice(20260312);
  for (int i = 0; i < kLayouts; ++i) {
    CAPTURE(i);
    const RandomModel model = random_model(dice);
    const auto ranks = static_cast<std::int32_t>(dice.between(1, 9));
    const UnitLayout layout(model.unit, model.parameters, ranks);
    std::int64_t end = 0;
    std::int64_t end_of_elements = 0;
    std::size_t parameters = 0;
    for (const Group& group : layout.groups()) {
      CHECK(group.offset() >= end);
      end = group.offset() + group.bytes();
      if (!group.empty()) end_of_elements = end;
      CHECK(group.partition().padding() < ranks);
      parameters += group.parameters().size();
      std::int64_t free_from = group.offset();
      for (std::size_t p = 0; p < group.parameters().size(); ++p) {
        CHECK(group.place(p) % shard::kPlaceAlignment == 0);
        CHECK(group.place(p) >= free_from);
        free_from = group.place(p) + group.flat().range(p).size() * group.type().bytes;
        const Parameter& parameter = model.parameters[group.parameters()[p]];
        CHECK(parameter.type == group.type());
        CHECK(parameter.trainable == group.trainable());
      }
      CHECK(free_from <= end + (group.empty() ? shard::kPlaceAlignment : 0));
    }
    CHECK(parameters == model.parameters.size());
    CHECK(layout.storage_bytes() == end_of_elements);
  }
}

TEST_CASE("5,000 units: packed bytes spread in place are every parameter's bytes") {
  Dice dice(20260313);
  for (int i = 0; i < kLayouts; ++i) {
    CAPTURE(i);
    const RandomModel model = random_model(dice);
    const UnitLayout layout(model.unit, model.parameters,
                            static_cast<std::int32_t>(dice.between(1, 9)));
    Bytes storage(static_cast<std::size_t>(layout.storage_bytes()), 0);
    for (const Group& group : layout.groups()) {
      write_packed(storage, group, {0, group.flat().elements()});
    }
    for (const Group& group : layout.groups()) {
      move(storage, group, group.spread());
      CHECK(first_misplaced(storage, group) == -1);
    }
  }
}

TEST_CASE("5,000 units: each rank compacts its own pieces into its slot") {
  Dice dice(20260314);
  for (int i = 0; i < kLayouts; ++i) {
    CAPTURE(i);
    const RandomModel model = random_model(dice);
    const auto ranks = static_cast<std::int32_t>(dice.between(1, 9));
    const UnitLayout layout(model.unit, model.parameters, ranks);
    for (const Group& group : layout.groups()) {
      Bytes placed(static_cast<std::size_t>(layout.storage_bytes()), 0);
      write_packed(placed, group, {0, group.flat().elements()});
      move(placed, group, group.spread());
      Bytes gathered(placed.size(), 0);
      for (std::int32_t r = 0; r < ranks && !group.empty(); ++r) {
        Bytes own = placed;
        move(own, group, group.compact(r));
        const std::int64_t from = group.own_slot_offset(r);
        const std::int64_t bytes = group.partition().range(r).size() * group.type().bytes;
        std::copy_n(own.begin() + from, bytes, gathered.begin() + from);
      }
      move(gathered, group, group.spread());
      CHECK(first_misplaced(gathered, group) == -1);
    }
  }
}

TEST_CASE("a unit with sizes of whole 64 bytes is gathered without a move") {
  const std::vector<Parameter> parameters{{"w", {16, 16}, {0, 4}, true, 0},
                                          {"b", {16}, {0, 4}, true, 0}};
  const UnitLayout layout({"u", {0, 1}, {}, false}, parameters, 3);
  REQUIRE(layout.groups().size() == 1);
  const Group& group = layout.groups()[0];
  CHECK(group.spread().empty());
  CHECK(group.compact(1).empty());
  CHECK(group.partition().chunk() == 91);       // ceil(272 / 3)
  CHECK(layout.storage_bytes() == 3 * 91 * 4);  // one element of padding
  CHECK(group.own_slot_offset(2) == 2 * 91 * 4);
}

TEST_CASE("frozen parameters and other dtypes are groups of their own") {
  const std::vector<Parameter> parameters{{"w", {5}, {0, 2}, true, 0},
                                          {"norm", {3}, {1, 4}, true, 0},
                                          {"old", {7}, {0, 2}, false, 0},
                                          {"v", {9}, {0, 2}, true, 0}};
  const UnitLayout layout({"u", {0, 1, 2, 3}, {}, false}, parameters, 2);
  REQUIRE(layout.groups().size() == 3);
  CHECK(layout.groups()[0].parameters() == std::vector<std::size_t>{0, 3});
  CHECK(layout.groups()[1].parameters() == std::vector<std::size_t>{1});
  CHECK(layout.groups()[2].parameters() == std::vector<std::size_t>{2});
  CHECK(layout.elements() == 24);
  CHECK(layout.trainable_elements() == 17);
  CHECK(layout.has_frozen());
}

}  // namespace plimsoll::test
