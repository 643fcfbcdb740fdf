// resave_weights FOLDER OUT: a model of transformers through a checkpoint of three ranks and out again.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "plimsoll/base/or_throw.hpp"
#include "plimsoll/checkpoint/export.hpp"
#include "plimsoll/checkpoint/pretrained.hpp"
#include "plimsoll/formats/model_source.hpp"

#include "tests/checkpoint/saved_model.hpp"

namespace plimsoll {
namespace {

using checkpoint::PretrainedWeights;
using checkpoint::StateKind;

void resave(const std::string& folder, const std::string& out) {
  const network::NetworkSpec spec = or_throw(formats::load_model(folder));
  test::Model model = test::model_of(spec);
  PretrainedWeights weights =
      or_throw(PretrainedWeights::open(folder, spec, checkpoint::shapes_of(model.parameters)));
  for (std::size_t t = 0; t < model.tensors.size(); ++t) {
    model.tensors[t].states = {{StateKind::kWeight, weights.dtype(t), {}}};
  }
  const auto elements = [&](std::size_t t, StateKind, const shard::Range& range) {
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(range.size() * network::size_of(weights.dtype(t))));
    or_throw(weights.read(t, range, bytes));
    return bytes;
  };
  checkpoint::RunState run;
  run.model = or_throw(formats::describe_model(folder));
  const std::string saves = out + ".saves";
  const auto plan = test::plan_of(model, saves, 1, 3, shard::Stage::kParameters);
  or_throw(test::save(model, plan, run, elements));
  or_throw(checkpoint::export_checkpoint(saves + "/step-00000001", out, false));
  std::filesystem::remove_all(saves);
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: resave_weights FOLDER OUT\n");
    return 2;
  }
  try {
    plimsoll::resave(argv[1], argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
