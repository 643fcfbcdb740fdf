#include "tests/checkpoint/saved_model.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "plimsoll/network/families/families.hpp"

namespace plimsoll::test {

using checkpoint::StateKind;
using network::DType;

namespace {

constexpr std::size_t kBlocks = 3;

// Kinds in turn: three states in fp32, two with a bf16 weight, a frozen one.
std::vector<checkpoint::TensorState> states_of(std::size_t tensor) {
  switch (tensor % 4) {
    case 0:
      return {{StateKind::kWeight, DType::kFloat32, {}}};
    case 1:
      return {{StateKind::kWeight, DType::kBFloat16, {}},
              {StateKind::kFirstMoment, DType::kFloat32, {}}};
    case 2:
      return {{StateKind::kWeight, DType::kFloat64, {}},
              {StateKind::kFirstMoment, DType::kFloat64, {}},
              {StateKind::kSecondMoment, DType::kFloat32, {}}};
    default:
      return {{StateKind::kWeight, DType::kFloat32, {}},
              {StateKind::kFirstMoment, DType::kFloat32, {}},
              {StateKind::kSecondMoment, DType::kFloat32, {}}};
  }
}

Model with_shapes(const std::vector<std::vector<std::int64_t>>& shapes) {
  Model model;
  std::vector<std::string> blocks;
  for (std::size_t b = 0; b < kBlocks; ++b) blocks.push_back(fmt::format("blocks.{}", b));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::size_t block = i % (kBlocks + 1);
    const std::string place = block < kBlocks ? blocks[block] : "root_part";
    shard::Parameter parameter;
    parameter.name = fmt::format("{}.w{}", place, i);
    parameter.shape = shapes[i];
    parameter.trainable = i % 4 != 0;
    model.parameters.push_back(parameter);
    model.tensors.push_back({parameter.name, shapes[i], states_of(i)});
  }
  model.units = *shard::group_by_blocks(model.parameters, blocks);
  return model;
}

}  // namespace

Model small_model() { return with_shapes({{3, 5}, {7}, {}, {4, 0}, {2, 3, 2}, {1}, {3, 1}, {5}}); }

Model random_model(Dice& dice) {
  std::vector<std::vector<std::int64_t>> shapes(static_cast<std::size_t>(dice.between(1, 14)));
  for (auto& shape : shapes) {
    shape.resize(static_cast<std::size_t>(dice.between(0, 3)));
    for (auto& size : shape) size = dice.one_in(12) ? 0 : dice.between(1, 13);
  }
  return with_shapes(shapes);
}

Model model_of(const network::NetworkSpec& spec) {
  network::BuildOptions options;
  options.sequence = 2;
  Model model;
  std::vector<std::int32_t> block_of;
  for (const network::Parameter& p : build_network(spec, options).parameters) {
    shard::Parameter parameter;
    parameter.name = p.name;
    parameter.shape = {p.shape.begin(), p.shape.end()};
    block_of.push_back(p.unit);
    model.parameters.push_back(parameter);
    model.tensors.push_back({parameter.name,
                             parameter.shape,
                             {{StateKind::kWeight, DType::kFloat32, {}},
                              {StateKind::kFirstMoment, DType::kFloat32, {}},
                              {StateKind::kSecondMoment, DType::kFloat32, {}}}});
  }
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < spec.layers; ++i) names.push_back(fmt::format("layer {}", i));
  model.units = *shard::group_by_index(model.parameters, block_of, names);
  return model;
}

std::vector<std::byte> bytes_of(const Model& model, std::size_t tensor, StateKind kind,
                                const shard::Range& elements) {
  const checkpoint::TensorState* state = model.tensors[tensor].find(kind);
  const auto size = static_cast<std::size_t>(network::size_of(state->dtype));
  std::vector<std::byte> bytes;
  for (std::int64_t e = elements.begin; e < elements.end; ++e) {
    const auto seed =
        static_cast<std::uint64_t>(e) * 64 + tensor * 4 + static_cast<std::uint64_t>(kind) + 1;
    const std::uint64_t value = seed * 0x9e3779b97f4a7c15U;
    std::byte raw[8];
    std::memcpy(raw, &value, sizeof(raw));
    // The upper bytes of a product by an odd number differ most.
    bytes.insert(bytes.end(), raw + 8 - size, raw + 8);
  }
  return bytes;
}

std::vector<Owned> owned(const Model& model, shard::Stage stage, std::int32_t ranks,
                         std::int32_t rank, bool writes) {
  std::vector<Owned> result;
  if (stage == shard::Stage::kNothing) {
    for (std::size_t t = 0; t < model.tensors.size(); ++t) {
      const std::int64_t elements = element_count(model.tensors[t]);
      const shard::Range all{0, elements};
      result.push_back({t, writes ? shard::Partition(elements, ranks).range(rank) : all});
    }
    return result;
  }
  for (const shard::UnitLayout& layout : lay_out(model.units, model.parameters, ranks)) {
    for (const shard::Group& group : layout.groups()) {
      for (const auto& piece : group.flat().pieces(group.partition().range(rank))) {
        result.push_back({group.parameters()[piece.array], piece.in_array});
      }
    }
  }
  return result;
}

checkpoint::SavePlan plan_of(const Model& model, const std::string& folder, std::int64_t step,
                             std::int32_t ranks, shard::Stage stage) {
  return {folder, step, ranks, stage, model.tensors};
}

checkpoint::RunState run_state(std::int64_t step) {
  checkpoint::RunState run;
  run.model = "minigpt:d=8,L=1,V=5,s=4,heads=1";
  run.optimizer_steps = step;
  run.schedule = {{"decay", "cosine"}, {"peak", "0.0003"}};
  run.data = {{"seed", "7"}, {"position", "1234"}};
  run.settings = {{"optimizer", "adamw"}, {"quotes \"and\" \n control", "\x01 \xc3\xa4"}};
  run.progress = {{"tokens", "4096"}};
  return run;
}

namespace {

Result<void> write_rank(const Model& model, const checkpoint::SavePlan& plan, std::int32_t rank,
                        const Elements& elements, checkpoint::Disk& disk) {
  auto writer = checkpoint::Writer::open(plan, rank, disk);
  if (!writer) return tl::unexpected<Error>(writer.error());
  for (const Owned& part : owned(model, plan.stage, plan.ranks, rank, true)) {
    for (const checkpoint::TensorState& state : plan.tensors[part.tensor].states) {
      auto added = writer->add(part.tensor, state.kind, part.elements,
                               elements(part.tensor, state.kind, part.elements));
      if (!added) return added;
    }
  }
  const std::string random = fmt::format("generator of rank {}", rank);
  return writer->add_blob("random", std::as_bytes(std::span(random))).and_then([&] {
    return writer->finish();
  });
}

}  // namespace

checkpoint::Disk& quick_disk() {
  static QuickDisk disk;
  return disk;
}

Result<void> save(const Model& model, const checkpoint::SavePlan& plan,
                  const checkpoint::RunState& run, const Elements& elements,
                  checkpoint::Disk& disk) {
  auto done = checkpoint::prepare(plan, disk);
  for (std::int32_t rank = 0; done && rank < plan.ranks; ++rank) {
    done = write_rank(model, plan, rank, elements, disk);
  }
  if (done) return checkpoint::commit(plan, run, disk);
  checkpoint::abandon(plan);
  return done;
}

Result<void> save(const Model& model, const checkpoint::SavePlan& plan, checkpoint::Disk& disk) {
  const auto elements = [&](std::size_t tensor, StateKind kind, const shard::Range& range) {
    return bytes_of(model, tensor, kind, range);
  };
  return save(model, plan, run_state(plan.step), elements, disk);
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace plimsoll::test
