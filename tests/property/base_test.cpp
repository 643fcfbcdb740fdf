// Numbers, arithmetic and messages of plimsoll/base.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/error.hpp"
#include "plimsoll/base/number_text.hpp"

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();
constexpr int kSamples = 20000;

// Numbers of all magnitudes: each bit length is as likely as any other.
std::int64_t random_number(Dice& dice) {
  const std::int64_t value = dice.between(0, kLargest - 1) >> dice.between(0, 62);
  return dice.coin() ? value : -value;
}

}  // namespace

TEST_CASE("grouped: commas change nothing but the look") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(-1234567) == "-1,234,567");
  CHECK(grouped(kLargest) == "9,223,372,036,854,775,807");
  CHECK(grouped(kSmallest) == "-9,223,372,036,854,775,808");
  Dice dice(1);
  for (int i = 0; i < kSamples; ++i) {
    const std::int64_t value = random_number(dice);
    std::string text = grouped(value);
    const std::size_t digits = text.size() - (value < 0 ? 1 : 0);
    for (std::size_t at = 4; at <= digits; at += 4) CHECK(text[text.size() - at] == ',');
    text.erase(std::remove(text.begin(), text.end(), ','), text.end());
    CHECK(text == std::to_string(value));
  }
}

TEST_CASE("human: binary units with two decimals, exact below 1 KiB") {
  CHECK(human(Bytes{0}) == "0 B");
  CHECK(human(Bytes{512}) == "512 B");
  CHECK(human(Bytes{1023}) == "1023 B");
  CHECK(human(Bytes{kKiB}) == "1.00 KiB");
  CHECK(human(Bytes{1536}) == "1.50 KiB");
  CHECK(human(Bytes{23247160}) == "22.17 MiB");
  CHECK(human(Bytes{kGiB}) == "1.00 GiB");
  CHECK(human(Bytes{80 * kGiB}) == "80.00 GiB");
}

TEST_CASE("human: the number before the unit is at least 1 and below 1024") {
  Dice dice(2);
  for (int i = 0; i < kSamples; ++i) {
    const std::int64_t bytes = dice.between(kKiB, kLargest - 1) >> dice.between(0, 52);
    if (bytes < kKiB) continue;
    const std::string text = human(Bytes{bytes});
    const double number = std::stod(text);
    CAPTURE(bytes);
    CHECK(number >= 1);
    CHECK(number < 1024);
  }
}

TEST_CASE("human: counts and FLOPs in decimal units") {
  CHECK(human_count(999) == "999");
  CHECK(human_count(8030261248) == "8.03 B");
  CHECK(human_count(1240000000000) == "1.24 T");
  CHECK(human(Flops{1230000000000}) == "1.23 TFLOP");
}

TEST_CASE("checked arithmetic: wide integers agree, and what leaves 64 bits throws") {
  __extension__ typedef __int128 Wide;
  Dice dice(3);
  for (int i = 0; i < kSamples; ++i) {
    const std::int64_t a = random_number(dice);
    const std::int64_t b = random_number(dice);
    const auto fits = [](Wide value) { return value >= kSmallest && value <= kLargest; };
    CAPTURE(a);
    CAPTURE(b);
    if (const Wide product = static_cast<Wide>(a) * b; fits(product)) {
      CHECK(checked_mul(a, b) == static_cast<std::int64_t>(product));
    } else {
      CHECK_THROWS_AS(checked_mul(a, b), OverflowError);
    }
    if (const Wide sum = static_cast<Wide>(a) + b; fits(sum)) {
      CHECK(checked_add(a, b) == static_cast<std::int64_t>(sum));
    } else {
      CHECK_THROWS_AS(checked_add(a, b), OverflowError);
    }
  }
}

TEST_CASE("checked arithmetic: the borders, and quantities") {
  CHECK(checked_add(kLargest, 0) == kLargest);
  CHECK_THROWS_AS(checked_add(kLargest, 1), OverflowError);
  CHECK_THROWS_AS(checked_add(kSmallest, -1), OverflowError);
  CHECK_THROWS_AS(checked_mul(kSmallest, -1), OverflowError);
  CHECK((Bytes{3} + Bytes{4}).value == 7);
  CHECK((Bytes{3} - Bytes{4}).value == -1);
  CHECK((5 * Bytes{3}).value == 15);
  CHECK_THROWS_AS(Bytes{kLargest} + Bytes{1}, OverflowError);
  CHECK_THROWS_AS(Bytes{kLargest} * 2, OverflowError);
  CHECK(Bytes{1} < Bytes{2});
}

TEST_CASE("nearest_name: a slip of the pen finds its name, a stranger finds nothing") {
  const std::vector<std::string> names = {"gpt2", "gpt2-xl", "llama-3-8b", "mistral-7b-v0.1"};
  CHECK(nearest_name("gpt-2", names) == "gpt2");
  CHECK(nearest_name("lama-3-8b", names) == "llama-3-8b");
  CHECK(nearest_name("mistral-7b-v1", names) == "mistral-7b-v0.1");
  CHECK(nearest_name("xyzzy", names) == "");
  CHECK(nearest_name("gpt2", std::vector<std::string>{}) == "");
  for (const std::string& name : names) CHECK(nearest_name(name, names) == name);
}

TEST_CASE("nearest_name: one changed letter of a long name finds it") {
  const std::vector<std::string> names = {"checkpoint", "precision", "optimizer-impl", "semantics",
                                          "accumulate"};
  Dice dice(4);
  for (int i = 0; i < 1000; ++i) {
    const std::string name = dice.pick(names);
    std::string typo = name;
    const auto at = static_cast<std::size_t>(dice.between(0, static_cast<int>(name.size()) - 1));
    typo[at] = static_cast<char>(dice.between('a', 'z'));
    CAPTURE(typo);
    CHECK(nearest_name(typo, names) == name);
  }
}

TEST_CASE("format_error: one line, with the hint if there is one") {
  CHECK(format_error({"--batch", "batch=0, expected at least 1", ""}) ==
        "[--batch] batch=0, expected at least 1.");
  CHECK(format_error({"a.json", "ends early.", ""}) == "[a.json] ends early.");
  CHECK(format_error({"--model", "unknown", "gpt2"}) == "[--model] unknown. Hint: gpt2");
}

TEST_CASE("format_error: control characters of the input are escaped") {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string input = std::string("a") + static_cast<char>(byte) + "b";
    const std::string line = format_error({input, input, input});
    CAPTURE(byte);
    for (const char c : line) {
      const auto code = static_cast<unsigned char>(c);
      CHECK(code >= 0x20);
      CHECK(code != 0x7f);
    }
    const bool printable = byte >= 0x20 && byte < 0x7f;
    if (printable) CHECK(line.find(input) != std::string::npos);
  }
}

TEST_CASE("check: a failed one names the place and the condition") {
  CHECK_NOTHROW(check(true, "fine"));
  try {
    check(false, "tables and chairs");
    FAIL("no exception");
  } catch (const InternalError& error) {
    const std::string what = error.what();
    CHECK(what.find("tables and chairs") != std::string::npos);
    CHECK(what.find("base_test.cpp") != std::string::npos);
  }
}

}  // namespace plimsoll::test
