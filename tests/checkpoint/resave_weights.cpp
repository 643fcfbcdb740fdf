// resave_weights FOLDER OUT: a model of transformers through a checkpoint of three ranks and out again.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "plimsoll/checkpoint/export.hpp"
#include "plimsoll/checkpoint/pretrained.hpp"
#include "plimsoll/formats/model_source.hpp"

#include "tests/checkpoint/saved_model.hpp"

namespace plimsoll {
namespace {

using checkpoint::PretrainedWeights;
using checkpoint::StateKind;

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(format_error(result.error()));
  return *std::move(result);
}

void resave(const std::string& folder, const std::string& out) {
  const network::NetworkSpec spec = value_of(formats::load_model(folder));
  test::Model model = test::model_of(spec);
  std::vector<checkpoint::NamedShape> shapes;
  for (const auto& tensor : model.tensors) shapes.push_back({tensor.name, tensor.shape});
  PretrainedWeights weights = value_of(PretrainedWeights::open(folder, spec, shapes));
  for (std::size_t t = 0; t < model.tensors.size(); ++t) {
    model.tensors[t].states = {{StateKind::kWeight, weights.dtype(t), {}}};
  }
  const auto elements = [&](std::size_t t, StateKind, const shard::Range& range) {
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(range.size() * network::size_of(weights.dtype(t))));
    const auto read = weights.read(t, range, bytes);
    if (!read) throw std::runtime_error(format_error(read.error()));
    return bytes;
  };
  checkpoint::RunState run;
  run.model = value_of(formats::describe_model(folder));
  const std::string saves = out + ".saves";
  const auto plan = test::plan_of(model, saves, 1, 3, shard::Stage::kParameters);
  const auto saved = test::save(model, plan, run, elements);
  if (!saved) throw std::runtime_error(format_error(saved.error()));
  value_of(checkpoint::export_checkpoint(saves + "/step-00000001", out, false));
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
