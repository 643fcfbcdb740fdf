// The checkpoints in tests/checkpoint/example, which documents show: what an older plimsoll wrote in
// this format is still read. UPDATE_GOLDEN=1 writes them anew.
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <doctest/doctest.h>

#include "plimsoll/checkpoint/verify.hpp"
#include "plimsoll/formats/model_source.hpp"

#include "tests/checkpoint/saved_model.hpp"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using checkpoint::StateKind;

const std::string kFolder = "tests/checkpoint/example";
constexpr const char* kModel = "minigpt:d=8,L=1,V=16,s=4,heads=2";

// Small numbers without a pattern.
std::vector<std::byte> elements(std::size_t tensor, StateKind kind, const shard::Range& range) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(range.size()) * sizeof(float));
  for (std::int64_t e = range.begin; e < range.end; ++e) {
    const std::int64_t seed = (e * 7919 + static_cast<std::int64_t>(tensor) * 104729 +
                               static_cast<std::int64_t>(kind) * 1299709) %
                              2001;
    const float value = static_cast<float>(seed - 1000) / 4096.0F;
    std::memcpy(bytes.data() + static_cast<std::size_t>(e - range.begin) * sizeof(float), &value,
                sizeof(float));
  }
  return bytes;
}

checkpoint::RunState run_at(std::int64_t step) {
  checkpoint::RunState run;
  run.model = kModel;
  run.optimizer_steps = step;
  run.schedule = {{"lr", "0.003"}, {"schedule", "cosine"}, {"steps", "30"}, {"warm_up", "0"}};
  run.data = {{"cursor", std::to_string(step * 8)}, {"file", "corpus.txt"}, {"seed", "0"}};
  run.settings = {
      {"batch", "4"}, {"optimizer", "adamw"}, {"precision", "fp32"}, {"ranks", "2"}, {"zero", "3"}};
  return run;
}

void write_example(const test::Model& model) {
  fs::remove_all(kFolder);
  for (std::int64_t step : {10, 20}) {
    const auto plan = test::plan_of(model, kFolder, step, 2, shard::Stage::kParameters);
    REQUIRE(test::save(model, plan, run_at(step), elements).has_value());
  }
}

TEST_CASE("checkpoints of this format stay readable") {
  const test::Model model = test::model_of(*formats::load_model(kModel));
  if (std::getenv("UPDATE_GOLDEN") != nullptr) write_example(model);
  const auto newest = checkpoint::newest_valid(kFolder);
  REQUIRE(newest.has_value());
  REQUIRE(newest->found.has_value());
  CHECK(newest->found->step == 20);
  auto reader = checkpoint::Reader::open(newest->found->folder);
  REQUIRE(reader.has_value());
  CHECK(reader->manifest().run == run_at(20));
  for (std::size_t t = 0; t < model.tensors.size(); ++t) {
    for (const auto& state : model.tensors[t].states) {
      const shard::Range all{0, element_count(model.tensors[t])};
      const auto expected = elements(t, state.kind, all);
      std::vector<std::byte> got(expected.size());
      REQUIRE(reader->read(model.tensors[t].name, state.kind, all, got).has_value());
      REQUIRE(reader->compare_checksums().has_value());
      CHECK(got == expected);
    }
  }
}

}  // namespace
}  // namespace plimsoll
