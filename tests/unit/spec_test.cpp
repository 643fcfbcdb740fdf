// NetworkSpec: which descriptions are accepted, and how many parameters they have, term by term.
#include "plimsoll/network/spec.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/truth_files.hpp"

namespace {

using namespace plimsoll::network;
using nlohmann::json;
using plimsoll::test::truth;

std::int64_t total(const NetworkSpec& spec) {
  std::int64_t sum = 0;
  for (const ParameterTerm& term : parameter_terms(spec)) sum += term.count;
  return sum;
}

const ParameterTerm& term(const std::vector<ParameterTerm>& terms, const std::string& name) {
  for (const ParameterTerm& t : terms) {
    if (t.name == name) return t;
  }
  FAIL("no term ", name);
  return terms.front();
}

NetworkSpec minigpt(std::int64_t d, std::int64_t layers, std::int64_t vocabulary,
                    std::int64_t positions) {
  NetworkSpec spec;
  spec.family = Family::kMiniGpt;
  spec.architecture = gpt_architecture();
  spec.width = d;
  spec.layers = layers;
  spec.vocabulary = vocabulary;
  spec.positions = positions;
  spec.heads = 4;
  spec.kv_heads = 4;
  spec.head_dim = d / 4;
  spec.feed_forward = 4 * d;
  return spec;
}

NetworkSpec llama() {
  NetworkSpec spec = minigpt(96, 3, 503, 256);
  spec.family = Family::kLlama;
  spec.architecture = Architecture();
  spec.heads = 6;
  spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.feed_forward = 200;
  spec.tied_head = false;
  spec.activation = OpKind::kSilu;
  return spec;
}

NetworkSpec cnn3() {
  NetworkSpec spec;
  spec.family = Family::kCnn;
  spec.channels = {16, 24, 32};
  spec.image = 32;
  spec.classes = 10;
  spec.batch_norm = true;
  spec.conv_bias = false;
  spec.pool_last = true;
  return spec;
}

// A spec made by changing one thing of a good one, and the field that validate() must name.
struct BadSpec {
  const char* field;
  NetworkSpec spec;
};

template <class Change>
BadSpec bad(const char* field, NetworkSpec spec, Change change) {
  change(spec);
  return {field, std::move(spec)};
}

std::vector<BadSpec> bad_transformers() {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40U;
  return {
      bad("width", llama(), [](NetworkSpec& s) { s.width = 0; }),
      bad("width", llama(), [](NetworkSpec& s) { s.width = INT64_MAX; }),
      bad("layers", llama(), [](NetworkSpec& s) { s.layers = -1; }),
      bad("layers", llama(), [](NetworkSpec& s) { s.layers = 1'000'000; }),
      bad("heads", llama(), [](NetworkSpec& s) { s.heads = 0; }),
      bad("kv_heads", llama(), [](NetworkSpec& s) { s.kv_heads = 0; }),
      bad("kv_heads", llama(), [](NetworkSpec& s) { s.kv_heads = 4; }),
      bad("head_dim", llama(), [](NetworkSpec& s) { s.head_dim = 15; }),
      bad("head_dim", llama(), [](NetworkSpec& s) { s.head_dim = 0; }),
      bad("vocabulary", llama(), [](NetworkSpec& s) { s.vocabulary = -5; }),
      bad("positions", llama(), [](NetworkSpec& s) { s.positions = 0; }),
      bad("feed_forward", llama(), [](NetworkSpec& s) { s.feed_forward = 0; }),
      bad("activation", llama(), [](NetworkSpec& s) { s.activation = OpKind::kAdd; }),
      bad("norm_eps", llama(), [](NetworkSpec& s) { s.norm_eps = 0; }),
      bad("rope_theta", llama(),
          [](NetworkSpec& s) { s.rope_theta = std::numeric_limits<double>::infinity(); }),
      bad("config_dropout", llama(), [](NetworkSpec& s) { s.config_dropout = 1.5; }),
      bad("parameters", llama(), [](NetworkSpec& s) { s.width = s.vocabulary = kHuge; }),
      bad("parameters", llama(), [](NetworkSpec& s) { s.vocabulary = kHuge << 10U; }),
      bad("heads", minigpt(96, 2, 10, 8), [](NetworkSpec& s) { s.heads = s.kv_heads = 5; }),
      bad("kv_heads", minigpt(96, 2, 10, 8), [](NetworkSpec& s) { s.kv_heads = 2; }),
      bad("head_dim", minigpt(96, 2, 10, 8), [](NetworkSpec& s) { s.head_dim = 12; }),
  };
}

TEST_CASE("the notebook's models have the parameters it counted") {
  const json notebook = truth("notebook.json");
  for (const json& row : notebook.at("parameters")) {
    const NetworkSpec spec = minigpt(row.at("d"), row.at("L"), row.at("V"), row.at("s"));
    REQUIRE(validate(spec));
    CHECK(total(spec) == row.at("exact").get<std::int64_t>());
  }
  for (const json& row : notebook.at("sizes")) {
    const NetworkSpec spec = minigpt(row.at("d"), row.at("L"), row.at("V"), row.at("s"));
    // Printed with one decimal.
    const double tenths = std::round(static_cast<double>(total(spec)) / 1e5);
    CHECK(tenths / 10 == row.at("params_millions").get<double>());
  }
}

TEST_CASE("the gap of 12 L D^2 + V D is positions and norms") {
  const json row = truth("notebook.json").at("parameters").at(2);
  const auto terms = parameter_terms(minigpt(192, 6, 4096, 64));
  const json& gap = row.at("gap");
  CHECK(term(terms, "position_embedding").count == gap.at("position_embedding_sd"));
  CHECK(term(terms, "norms").count == gap.at("block_layer_norms_4Ld").get<std::int64_t>() +
                                          gap.at("final_layer_norm_2d").get<std::int64_t>());
  CHECK(term(terms, "attention").count + term(terms, "mlp").count +
            term(terms, "token_embedding").count ==
        row.at("incomplete_12Ld2_plus_Vd"));
}

TEST_CASE("terms show formula and numbers") {
  const auto terms = parameter_terms(minigpt(128, 4, 1000, 64));
  CHECK(term(terms, "norms").formula == "(4 L + 2) D");
  CHECK(term(terms, "norms").substituted == "(4 * 4 + 2) * 128");
  CHECK(term(terms, "norms").count == 2304);
  CHECK(term(terms, "head").formula == "0: tied to token_embedding");
  CHECK(term(terms, "head").count == 0);
}

TEST_CASE("the convolutional network has the parameters PyTorch counts") {
  const json reference = truth("hf/activations/cnn3.json");
  NetworkSpec spec = cnn3();
  REQUIRE(validate(spec));
  CHECK(total(spec) == reference.at("params_unique").get<std::int64_t>());
  spec.conv_bias = true;
  spec.batch_norm = false;
  spec.pool_last = false;
  CHECK(total(spec) == 448 + 3480 + 6944 + 32 * 32 * 32 * 10 + 10);
}

TEST_CASE("an untied head counts twice, biases by formula") {
  NetworkSpec spec = minigpt(128, 4, 1000, 64);
  const std::int64_t tied = total(spec);
  spec.tied_head = false;
  CHECK(total(spec) == tied + 1000 * 128);
  NetworkSpec biased = llama();
  const std::int64_t plain = total(biased);
  biased.attention_bias = true;
  biased.mlp_bias = true;
  CHECK(total(biased) == plain + 3 * (96 + 2 * 32 + 96) + 3 * (2 * 200 + 96));
}

TEST_CASE("validate names the field that is wrong") {
  REQUIRE(validate(llama()));
  for (const BadSpec& bad : bad_transformers()) {
    const auto result = validate(bad.spec);
    REQUIRE_FALSE(result);
    CHECK(result.error().where == bad.field);
    CHECK_FALSE(result.error().what.empty());
  }
}

TEST_CASE("validate names the field that is wrong in a convolutional network") {
  const std::vector<BadSpec> cases = {
      bad("channels", cnn3(), [](NetworkSpec& s) { s.channels.clear(); }),
      bad("channels", cnn3(), [](NetworkSpec& s) { s.channels[1] = 0; }),
      bad("image", cnn3(), [](NetworkSpec& s) { s.image = 33; }),
      bad("image", cnn3(), [](NetworkSpec& s) { s.image = 0; }),
      bad("image", cnn3(), [](NetworkSpec& s) { s.image = 2; }),
      bad("classes", cnn3(), [](NetworkSpec& s) { s.classes = -2; }),
      bad("parameters", cnn3(), [](NetworkSpec& s) { s.image = std::int64_t{1} << 40U; }),
  };
  for (const BadSpec& bad : cases) {
    const auto result = validate(bad.spec);
    REQUIRE_FALSE(result);
    CHECK(result.error().where == bad.field);
  }
}

TEST_CASE("names") {
  CHECK(name(Family::kMiniGpt) == "minigpt");
  CHECK(name(Family::kCnn) == "cnn");
  CHECK(name(Semantics::kPlimsoll) == "plimsoll");
  CHECK(name(Semantics::kHuggingFace) == "hf");
}

}  // namespace
