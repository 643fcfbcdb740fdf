// Models written on the command line.
#include "plimsoll/formats/inline_model.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace plimsoll::formats;
using plimsoll::network::Family;
using plimsoll::network::NetworkSpec;
using plimsoll::network::OpKind;

NetworkSpec read_inline(const std::string& text) {
  const auto spec = read_inline_model(text);
  REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : plimsoll::format_error(spec.error())));
  return *spec;
}

std::int64_t parameters_of(const NetworkSpec& spec) {
  std::int64_t sum = 0;
  for (const auto& term : parameter_terms(spec)) sum += term.count;
  return sum;
}

TEST_CASE("minigpt is the notebook's model") {
  const NetworkSpec spec = read_inline("minigpt:d=192,L=6,V=4096,s=64,heads=4");
  CHECK(spec.family == Family::kMiniGpt);
  CHECK(spec.title == "minigpt:d=192,L=6,V=4096,s=64,heads=4");
  CHECK(spec.head_dim == 48);
  CHECK(spec.feed_forward == 768);
  CHECK(spec.activation == OpKind::kGelu);
  CHECK(spec.tied_head);
  CHECK_FALSE(spec.attention_bias);
  CHECK_FALSE(spec.mlp_bias);
  CHECK(spec.assumptions.empty());
  CHECK(parameters_of(spec) == 3457920);
}

TEST_CASE("absent keys take defaults and are listed") {
  for (const char* text : {"minigpt", "minigpt:", "MiniGPT"}) {
    const NetworkSpec spec = read_inline(text);
    CHECK(parameters_of(spec) == 924928);
    REQUIRE(spec.assumptions.size() == 5);
    CHECK(spec.assumptions.front() == "d: absent, default 128");
  }
  CHECK(read_inline("cnn").assumptions.size() == 3);
}

TEST_CASE("cnn options") {
  const NetworkSpec spec = read_inline(
      "cnn:channels=16-24-32,image=32,classes=10,norm=batch,bias=off,"
      "pool=last");
  CHECK(spec.channels == std::vector<std::int64_t>{16, 24, 32});
  CHECK(spec.batch_norm);
  CHECK_FALSE(spec.conv_bias);
  CHECK(spec.pool_last);
  CHECK_FALSE(spec.relu_in_place);
  CHECK(parameters_of(spec) == 92874);
  const NetworkSpec plain =
      read_inline("cnn:channels=8,image=5,classes=2,relu=inplace,norm=none,bias=on");
  CHECK(plain.relu_in_place);
  CHECK_FALSE(plain.batch_norm);
  CHECK(plain.conv_bias);
  CHECK(parameters_of(plain) == 224 + 8 * 25 * 2 + 2);
}

TEST_CASE("what is inline") {
  CHECK(is_inline_model("cnn:x"));
  CHECK(is_inline_model("minigpt"));
  CHECK_FALSE(is_inline_model("minigpt2"));
  CHECK_FALSE(is_inline_model("cnn3"));
  CHECK_FALSE(is_inline_model(""));
}

struct BadInline {
  std::string text;
  std::string where;
  std::string what;
};

std::vector<BadInline> bad_inline_models() {
  return {
      {"minigpt:d=0", "minigpt:d", "\"0\", expected a whole number"},
      {"minigpt:d=-8", "minigpt:d", "\"-8\", expected a whole number of at least 1"},
      {"minigpt:d=", "minigpt:d", "\"\", expected a whole number"},
      {"minigpt:d=12x", "minigpt:d", "\"12x\""},
      {"minigpt:d= 12", "minigpt:d", "\" 12\""},
      {"minigpt:d=1.5", "minigpt:d", "\"1.5\""},
      {"minigpt:d=1e3", "minigpt:d", "\"1e3\""},
      {"minigpt:d=99999999999999999999", "minigpt:d", "at most 2^51"},
      {"minigpt:d=9007199254740992", "minigpt:d", "9007199254740992, expected at most 2^51"},
      {"minigpt:d=2251799813685249", "minigpt:d", "2251799813685249, expected at most 2^51"},
      {"minigpt:V=9007199254740993", "minigpt:V", "9007199254740993, expected at most 2^53"},
      {"cnn:image=2", "cnn:image", "2, expected at least 3"},
      {"minigpt:d=1073741824", "minigpt", "2^53"},
      {"minigpt:d=130", "minigpt:heads", "4 does not divide width 130"},
      {"minigpt:L=1000000000", "minigpt:L", "from 1 to 10000"},
      {"minigpt:d=64,d=64", "minigpt:d", "given twice"},
      {"minigpt:d=64,", "minigpt", "ends with a comma"},
      {"minigpt:,", "minigpt", "expected key=value"},
      {"minigpt:d", "minigpt", "\"d\", expected key=value"},
      {"minigpt:v=10", "minigpt:v", "nearest is V"},
      {"minigpt:head=2", "minigpt:head", "nearest is heads"},
      {"minigpt:q=2", "minigpt:q", "keys are d, L, V, s, heads"},
      {"cnn:chanels=3", "cnn:chanels", "nearest is channels"},
      {"cnn:channels=", "cnn:channels", "expected a whole number"},
      {"cnn:channels=16--32", "cnn:channels", "\"\", expected"},
      {"cnn:channels=16-0", "cnn:channels", "\"0\", expected"},
      {"cnn:image=33,pool=last", "cnn:image", "33, expected an even number"},
      {"cnn:norm=layer", "cnn:norm", "layer, expected batch or none"},
      {"cnn:bias=maybe", "cnn:bias", "expected off or on"},
      {"cnn:image=99999999,classes=9999999999", "cnn", "parameters"},
  };
}

TEST_CASE("flaws of inline models name the option") {
  for (const BadInline& bad : bad_inline_models()) {
    CAPTURE(bad.text);
    const auto spec = read_inline_model(bad.text);
    REQUIRE_FALSE(spec);
    const std::string message = plimsoll::format_error(spec.error());
    CAPTURE(message);
    CHECK(spec.error().where == bad.where);
    CHECK(message.find(bad.what) != std::string::npos);
  }
}

}  // namespace
