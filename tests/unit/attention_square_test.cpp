// How many pairs of query and key attention's masks leave, counted one by one.
#include <cstdint>

#include <doctest/doctest.h>

#include "plimsoll/network/rules/attention.hpp"

namespace plimsoll::network::rules {
namespace {

std::int64_t counted(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t window) {
  std::int64_t seen = 0;
  for (std::int64_t q = 0; q < queries; ++q) {
    const std::int64_t position = keys - queries + q;  // queries are the last positions
    for (std::int64_t k = 0; k < keys; ++k) {
      const bool hidden = causal && (k > position || (window > 0 && k <= position - window));
      seen += hidden ? 0 : 1;
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("pairs that attention sees: causal, with windows, with keys before the queries") {
  for (std::int64_t keys = 1; keys <= 9; ++keys) {
    for (std::int64_t queries = 1; queries <= keys; ++queries) {
      CHECK(attention_square(queries, keys, false, 0).seen == queries * keys);
      for (std::int64_t window = 0; window <= 11; ++window) {
        CAPTURE(queries);
        CAPTURE(keys);
        CAPTURE(window);
        const AttentionSquare square = attention_square(queries, keys, true, window);
        CHECK(square.seen == counted(queries, keys, true, window));
      }
    }
  }
}

}  // namespace plimsoll::network::rules
