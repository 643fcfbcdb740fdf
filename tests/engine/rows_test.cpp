// Which rows ranks read, what a token file refuses, and the learning rate over a run.
#include "plimsoll/engine/data/rows.hpp"

#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/engine/data/token_file.hpp"
#include "plimsoll/engine/train/learning_rate.hpp"

#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using engine::LearningRate;
using engine::RowOrder;
using engine::TokenFile;

// The rows of the first `steps` steps in the order in which one process would take them.
std::vector<std::int64_t> taken(const RowOrder& order, std::int64_t steps) {
  std::vector<std::int64_t> rows;
  for (std::int64_t s = 0; s < steps; ++s) {
    for (std::int64_t m = 0; m < order.accumulate; ++m) {
      for (std::int64_t r = 0; r < order.ranks; ++r) {
        for (std::int64_t b = 0; b < order.batch; ++b) {
          rows.push_back(order.row(s * order.rows_per_step(), m, r, b));
        }
      }
    }
  }
  return rows;
}

bool is_whole(const std::vector<std::int64_t>& rows, std::size_t first, std::int64_t count) {
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < count; ++i) {
    seen.insert(rows.at(first + static_cast<std::size_t>(i)));
  }
  return std::ssize(seen) == count && *seen.begin() == 0 && *seen.rbegin() == count - 1;
}

std::string first_error(const Result<TokenFile>& file) {
  return file ? "" : format_error(file.error());
}

}  // namespace

TEST_CASE("every epoch holds every row once, whatever R, k, B and the number of rows") {
  for (std::int64_t rows : {1, 2, 3, 5, 16, 17, 100}) {
    for (std::int64_t ranks : {1, 2, 3, 4}) {
      for (std::int64_t batch : {1, 3}) {
        CAPTURE(rows);
        CAPTURE(ranks);
        CAPTURE(batch);
        const RowOrder order{rows, 7, ranks, /*accumulate=*/2, batch};
        const std::int64_t steps = 3 * rows / order.rows_per_step() + 1;
        const auto all = taken(order, steps);
        for (std::int64_t epoch = 0; (epoch + 1) * rows <= std::ssize(all); ++epoch) {
          CHECK(is_whole(all, static_cast<std::size_t>(epoch * rows), rows));
        }
      }
    }
  }
}

TEST_CASE("the rows of a step do not depend on how many ranks share them") {
  const auto one = taken(RowOrder{1000, 3, 1, 12, 1}, 100);
  CHECK(one == taken(RowOrder{1000, 3, 2, 6, 1}, 100));
  CHECK(one == taken(RowOrder{1000, 3, 4, 1, 3}, 100));
}

TEST_CASE("a run that goes on with other ranks takes the rows that come next") {
  const auto one = taken(RowOrder{50, 3, 4, 2, 1}, 15);
  std::vector<std::int64_t> rows = taken(RowOrder{50, 3, 4, 2, 1}, 5);
  const RowOrder three{50, 3, 3, 1, 5};
  for (std::int64_t cursor = 40; cursor < 115; cursor += three.rows_per_step()) {
    for (std::int64_t r = 0; r < 3; ++r) {
      for (std::int64_t b = 0; b < 5; ++b) rows.push_back(three.row(cursor, 0, r, b));
    }
  }
  CHECK(rows == std::vector<std::int64_t>(one.begin(), one.begin() + 115));
}

TEST_CASE("epochs and seeds have different orders, and a row's place says nothing of the next") {
  const auto epochs = taken(RowOrder{1000, 3, 1, 1, 1000}, 2);
  const std::vector<std::int64_t> first(epochs.begin(), epochs.begin() + 1000);
  const std::vector<std::int64_t> second(epochs.begin() + 1000, epochs.end());
  CHECK(first != second);
  CHECK(first != taken(RowOrder{1000, 4, 1, 1, 1000}, 1));
  for (const auto& order : {first, second}) {
    // Of 999 neighbours in a random order one stays a neighbour on average; 10 are unheard of.
    int neighbours = 0;
    for (std::size_t i = 1; i < order.size(); ++i) neighbours += order[i] == order[i - 1] + 1;
    CHECK(neighbours < 10);
  }
}

TEST_CASE("what is held out is never trained on, and rows end inside their part") {
  const engine::Split split = engine::split_tokens(1001, 0.25);
  CHECK(split.training.tokens == 751);
  CHECK(split.held_out.first == 751);
  CHECK(split.held_out.tokens == 250);
  CHECK(split.training.rows(10) == 75);  // the last one reads token 750, its last target
  CHECK(split.training.rows(751) == 0);
  CHECK(split.training.rows(750) == 1);
  CHECK(engine::split_tokens(10, 0).held_out.rows(1) == 0);
}

TEST_CASE("tokens of 1, 2 and 4 bytes") {
  const test::TemporaryFolder folder;
  const auto text = TokenFile::open(folder.write("t", "ab\xff"), 1);
  const auto two = TokenFile::open(folder.write("2.bin", std::string("\x01\x02\xff\xff", 4)), 2);
  const auto four = TokenFile::open(folder.write("4.bin", std::string("\x01\0\0\x80", 4)), 4);
  REQUIRE(text);
  REQUIRE(two);
  REQUIRE(four);
  std::vector<std::int64_t> tokens(3);
  text->read(0, tokens);
  CHECK(tokens == std::vector<std::int64_t>{97, 98, 255});
  tokens.resize(2);
  two->read(0, tokens);
  CHECK(tokens == std::vector<std::int64_t>{0x201, 0xffff});
  tokens.resize(1);
  two->read(1, tokens);
  CHECK(tokens[0] == 0xffff);
  four->read(0, tokens);
  CHECK(tokens[0] == 0x80000001);
  CHECK_THROWS_WITH_AS(four->read(1, tokens), doctest::Contains("has become shorter"),
                       std::runtime_error);
}

TEST_CASE("token files that are refused") {
  const test::TemporaryFolder folder;
  const auto says = [](const Result<TokenFile>& file, const char* part) {
    CAPTURE(first_error(file));
    CHECK(first_error(file).find(part) != std::string::npos);
  };
  says(TokenFile::open(folder.path() + "/absent", 1), "no such file");
  says(TokenFile::open(folder.path(), 1), "is a folder");
  says(TokenFile::open("/dev/zero", 1), "is a device");
  says(TokenFile::open(folder.write("e", ""), 1), "is empty");
  says(TokenFile::open(folder.write("3.bin", "abc"), 2), "bytes=3, expected a multiple of 2");
  const auto numbers = TokenFile::open(folder.write("n.bin", std::string("\x01\0\x05\0", 4)), 2);
  REQUIRE(numbers);
  CHECK(numbers->check_vocabulary(6));
  REQUIRE_FALSE(numbers->check_vocabulary(5));
  CHECK(numbers->check_vocabulary(5).error().what.find("token=5 at position 1") == 0);
  const auto text = TokenFile::open(folder.write("t", "abc"), 1);
  REQUIRE(text);
  CHECK(text->check_vocabulary(256));
  CHECK_FALSE(text->check_vocabulary(255));
}

TEST_CASE("the rate rises in even steps, then falls to just above 0") {
  LearningRate rate{2.0, engine::Decay::kCosine, 4, 12};
  CHECK(rate.at(0) == 0.5);
  CHECK(rate.at(3) == 2.0);
  CHECK(rate.at(4) == 2.0);
  CHECK(rate.at(8) == doctest::Approx(1.0));
  CHECK(rate.at(11) > 0);
  CHECK(rate.at(11) < 0.1);
  rate.decay = engine::Decay::kLinear;
  CHECK(rate.at(8) == 1.0);
  CHECK(rate.at(11) == 0.25);
  rate.decay = engine::Decay::kConstant;
  CHECK(rate.at(11) == 2.0);
}

}  // namespace plimsoll
