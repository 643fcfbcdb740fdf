// The units of plimsoll's own networks, where the schedule's events come from, and what plans advise.
#include "plimsoll/plan/network_units.hpp"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/plan/plan.hpp"

namespace plimsoll::test {
namespace {

using shard::Stage;
using shard::UnitIndex;

network::NetworkSpec model(const std::string& name) {
  const auto spec = formats::load_model(name);
  REQUIRE(spec.has_value());
  return *spec;
}

plan::Job job(std::int64_t batch, std::int64_t sequence, std::int32_t ranks, Stage stage) {
  plan::Job job;
  job.batch = batch;
  job.sequence = sequence;
  job.ranks = ranks;
  job.stage = stage;
  return job;
}

plan::Plan plan_of(const std::string& name, const plan::Job& asked) {
  auto plan = plan::make_plan(model(name), asked);
  REQUIRE(plan.has_value());
  return std::move(*plan);
}

const char* const kSmall = "minigpt:d=64,L=2,V=500,s=64,heads=4";

}  // namespace

TEST_CASE("a GPT has a unit per block and a root with embeddings and the last norm") {
  const network::Network network =
      network::build_network(model(kSmall), job(1, 64, 3, Stage::kParameters).build_options());
  const plan::NetworkUnits units = plan::units_of(network, 3);
  REQUIRE(units.units.units.size() == 3);
  CHECK(units.units.units[0].name == "blocks.0");
  CHECK(units.units.units[2].name == "root");
  CHECK(plan::order_of(network) == std::vector<UnitIndex>{0, 1});
  std::int64_t elements = 0;
  for (const shard::UnitLayout& layout : units.layouts) elements += layout.elements();
  CHECK(elements == network.parameter_elements());
  CHECK(units.layouts[0].elements() == units.layouts[1].elements());
}

TEST_CASE("borders: a block's result begins its backward, the next block passes before it") {
  const network::Network network =
      network::build_network(model(kSmall), job(1, 64, 3, Stage::kParameters).build_options());
  const std::vector<plan::Border> borders = plan::borders_of(network, 2);
  std::vector<std::size_t> watched;
  for (std::size_t i = 0; i < borders.size(); ++i) {
    if (borders[i].watched()) watched.push_back(i);
  }
  // Embeddings, block 0, block 1, logits.
  REQUIRE(watched.size() == 4);
  CHECK(borders[watched[0]].begins == -1);
  CHECK(borders[watched[0]].passes == std::vector<UnitIndex>{0});
  CHECK(borders[watched[1]].begins == 0);
  CHECK(borders[watched[1]].passes == std::vector<UnitIndex>{1});
  CHECK(borders[watched[2]].begins == 1);
  CHECK(borders[watched[2]].passes.empty());
  CHECK(borders[watched[3]].begins == 2);
  CHECK(network.operations[watched[3]].outputs[0] == network.logits);
}

TEST_CASE("an image network and a gated one have units, too") {
  for (const char* name : {"cnn:channels=4-6,image=8,classes=3", "tinyllama-1.1b"}) {
    CAPTURE(name);
    const bool image = std::string(name).starts_with("cnn");
    const network::Network network = network::build_network(
        model(name), job(2, image ? 0 : 16, 2, Stage::kParameters).build_options());
    const plan::NetworkUnits units = plan::units_of(network, 2);
    CHECK(units.units.units.size() == (image ? 3 : 23));
    for (std::size_t u = 0; u < units.units.root(); ++u) {
      const auto borders = plan::borders_of(network, static_cast<UnitIndex>(units.units.root()));
      CHECK(std::count_if(borders.begin(), borders.end(), [&](const plan::Border& b) {
              return b.begins == static_cast<UnitIndex>(u);
            }) == 1);
    }
  }
}

TEST_CASE("advice: stage 2 dominates stage 1, by the bytes that the two plans differ") {
  const plan::Plan first = plan_of("gpt2", job(1, 256, 4, Stage::kOptimizer));
  const plan::Plan second = plan_of("gpt2", job(1, 256, 4, Stage::kGradients));
  REQUIRE(first.advice.size() == 1);
  CHECK(first.advice[0].starts_with("stage 2 dominates stage 1: the same traffic, and a peak "));
  CHECK(first.advice[0].ends_with(" lower: --zero 2"));
  CHECK(second.advice.empty());
  CHECK(second.steady.peak.bytes < first.steady.peak.bytes);
  REQUIRE(first.traffic.size() == second.traffic.size());
  for (std::size_t i = 0; i < first.traffic.size(); ++i) {
    CHECK(first.traffic[i].bytes == second.traffic[i].bytes);
  }
}

TEST_CASE("advice: where activations fill the memory, sharding is said to save little or to cost") {
  const plan::Plan plan = plan_of(kSmall, job(64, 64, 2, Stage::kParameters));
  REQUIRE(!plan.advice.empty());
  CHECK(plan.advice.back().starts_with("stage 3 "));
  const plan::Plan whole = plan_of(kSmall, job(64, 64, 2, Stage::kNothing));
  // 5 % is where advice.cpp draws the line.
  CHECK(static_cast<double>(plan.steady.peak.bytes) >
        0.95 * static_cast<double>(whole.steady.peak.bytes));
}

TEST_CASE("advice: none where a stage pays, and one rank has nothing to divide") {
  CHECK(plan_of("llama-3-8b", job(1, 2048, 8, Stage::kParameters)).advice.empty());
  CHECK(plan_of("gpt2", job(1, 256, 1, Stage::kNothing)).advice.empty());
  const plan::Plan alone = plan_of("gpt2", job(1, 256, 1, Stage::kParameters));
  REQUIRE(alone.advice.size() == 1);
  CHECK(alone.advice[0].starts_with("one rank has nothing to divide: --zero 0 has "));
  CHECK(alone.traffic.empty());
}

TEST_CASE("a 16-bit copy, a full gradient and shards: mixed llama-3-8b on 8 ranks, by stage") {
  const double psi = 8030261248;
  const double each[] = {18, 4 + 16.0 / 8, 2 + 16.0 / 8, 16.0 / 8};
  for (int stage = 0; stage <= 3; ++stage) {
    plan::Job asked = job(1, 512, 8, static_cast<Stage>(stage));
    asked.precision = plan::Precision::kMixed;
    const plan::Posts posts = plan_of("llama-3-8b", asked).posts;
    const std::int64_t held = posts.parameters + posts.gradients + posts.optimizer();
    // Nothing here needs a place or padding: all sizes are multiples of 64 bytes and of 8.
    CHECK(static_cast<double>(held) == each[stage] * psi);
  }
}

}  // namespace plimsoll::test
