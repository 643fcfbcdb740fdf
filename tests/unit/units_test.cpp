// Which parameter belongs to which unit, and what is refused.
#include "plimsoll/shard/units.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace plimsoll::test {
namespace {

using shard::Parameter;

std::vector<Parameter> named(const std::vector<std::string>& names) {
  std::vector<Parameter> result;
  for (const std::string& name : names) result.push_back({name, {2, 3}, {}, true, 0});
  return result;
}

using Positions = std::vector<std::size_t>;

}  // namespace

TEST_CASE("blocks take what lies in them, the longest name wins, the root has the rest") {
  const auto units = shard::group_by_blocks(
      named({"wte.weight", "blocks.1.a", "blocks.10.a", "blocks.1.mlp.b", "ln_f.weight"}),
      {"blocks.1", "blocks.10", "blocks.1.mlp"});
  REQUIRE(units.has_value());
  REQUIRE(units->units.size() == 4);
  CHECK(units->units[0].parameters == Positions{1});
  CHECK(units->units[1].parameters == Positions{2});
  CHECK(units->units[2].parameters == Positions{3});
  CHECK(units->units[3].parameters == Positions{0, 4});
  CHECK(units->units[3].root);
  CHECK(units->root() == 3);
  CHECK(units->unit_of == Positions{3, 0, 1, 2, 3});
}

TEST_CASE("a block without parameters is a unit without elements") {
  const auto units = shard::group_by_blocks(named({"a.weight"}), {"a", "dropout"});
  REQUIRE(units.has_value());
  CHECK(units->units[1].parameters.empty());
  CHECK(units->units[2].parameters.empty());
}

TEST_CASE("a tie inside a unit is one parameter with an alias") {
  std::vector<Parameter> parameters = named({"wte.weight", "h.0.w", "lm_head.weight"});
  parameters[0].identity = parameters[2].identity = 17;
  const auto units = shard::group_by_blocks(parameters, {"h.0"});
  REQUIRE(units.has_value());
  CHECK(units->units[1].parameters == Positions{0});
  REQUIRE(units->units[1].aliases.size() == 1);
  CHECK(units->units[1].aliases[0].listed == 0);
  CHECK(units->units[1].aliases[0].alias == 2);
}

TEST_CASE("a tie across units is refused with both names") {
  std::vector<Parameter> parameters = named({"wte.weight", "h.0.w", "lm_head.weight"});
  parameters[0].identity = parameters[2].identity = 17;
  const auto units = shard::group_by_blocks(parameters, {"h.0", "lm_head"});
  REQUIRE(!units.has_value());
  CHECK(format_error(units.error()) ==
        "[units] wte.weight (unit root) and lm_head.weight (unit lm_head) are one tensor, expected "
        "both in one unit. Hint: wrap a module that holds both, or leave both to the root");
}

TEST_CASE("equal names, blocks named twice and nameless blocks are refused") {
  CHECK(shard::group_by_blocks(named({"a.w", "a.w"}), {}).error().what ==
        "two parameters are called a.w, expected distinct names");
  CHECK(shard::group_by_blocks(named({"a.w"}), {"a", "a"}).error().what ==
        "block a is wrapped twice, expected once");
  CHECK(shard::group_by_blocks(named({"a.w"}), {""}).error().what ==
        "a block has no name, expected one");
}

TEST_CASE("grouping by index puts -1 into the root") {
  const auto units =
      shard::group_by_index(named({"e", "x", "y", "n"}), {-1, 0, 1, -1}, {"b0", "b1"});
  REQUIRE(units.has_value());
  CHECK(units->units[0].parameters == Positions{1});
  CHECK(units->units[2].parameters == Positions{0, 3});
}

}  // namespace plimsoll::test
