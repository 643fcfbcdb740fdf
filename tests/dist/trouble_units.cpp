// What one unit may hold: several types, frozen parameters, inputs that it ignores.
#include <fmt/format.h>

#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/shard/memory.hpp"

#include "tests/dist/tag_peaks.hpp"
#include "tests/dist/trouble.hpp"

namespace plimsoll::tests {
namespace {

using timeline::Tag;

// An fp32 norm among bf16 weights.
struct MixedTypesImpl : torch::nn::Module {
  MixedTypesImpl() {
    up = register_parameter("up", at::zeros({7, 5}, at::kBFloat16));
    scale = register_parameter("scale", at::zeros({7}));
    set_values(*this);
  }
  at::Tensor forward(const at::Tensor& x) {
    return at::linear(x.to(at::kBFloat16), up).to(at::kFloat) * scale;
  }
  at::Tensor up, scale;
};
TORCH_MODULE(MixedTypes);

void mixed_types(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    MixedTypes plain, model;
    ZeroSettings settings = at_stage(stage);
    settings.master = at::kFloat;
    ShardedModule sharded(model, world, settings);
    sharded.initialise();
    sharded.run([&] {
             return model->forward(rows({4, 5}, world.rank())).square().sum();
           })
        .backward();
    const auto loss = [&](int r, int) { return plain->forward(rows({4, 5}, r)).square().sum(); };
    require_gradients(sharded, mean_gradients(*plain, world.size(), loss),
                      fmt::format("stage {}", stage));
  }
  MixedTypes model;
  ShardedModule sharded(model, world);
  require_refused([&] { sharded.initialise(); }, {"parameter 'up'", "without a master"});
}

// --- frozen parameters ----------------------------------------------------------------------------

struct HalfFrozenImpl : torch::nn::Module {
  explicit HalfFrozenImpl(std::int64_t width) {
    frozen = register_module("frozen", torch::nn::Linear(width, width));
    trained = register_module("trained", torch::nn::Linear(width, width));
    for (at::Tensor& p : frozen->parameters()) p.requires_grad_(false);
  }
  at::Tensor forward(const at::Tensor& x) {
    return x + trained->forward(at::tanh(frozen->forward(at::tanh(x))));
  }
  torch::nn::Linear frozen{nullptr}, trained{nullptr};
};
TORCH_MODULE(HalfFrozen);

struct FrozenModelImpl : torch::nn::Module {
  FrozenModelImpl(int depth, std::int64_t width) {
    first = register_parameter("first", at::zeros({width}));
    for (int i = 0; i < depth; ++i) {
      blocks.push_back(register_module(fmt::format("block{}", i), HalfFrozen(width)));
    }
  }
  at::Tensor loss(const at::Tensor& input) {
    at::Tensor x = input * first;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      x = calls.empty() ? blocks[i]->forward(x) : calls[i](x);
    }
    return x.square().sum();
  }
  at::Tensor first;
  std::vector<HalfFrozen> blocks;
  std::vector<WrappedUnit> calls;
};
TORCH_MODULE(FrozenModel);

std::int64_t resident_bytes() {
  const timeline::BytesByTag live = engine::live_bytes();
  std::int64_t sum = 0;
  for (Tag tag : {Tag::kParameters, Tag::kMasterCopy, Tag::kGradients, Tag::kOptimizer}) {
    sum += live[static_cast<std::size_t>(tag)];
  }
  return sum;
}

constexpr std::int64_t kWidth = 5;

FrozenModel plain_model(int depth) {
  FrozenModel model(depth, kWidth);
  set_values(*model);
  return model;
}

// With the values of plain_model(), and no memory from before.
struct Sharded {
  Sharded(int depth, Communicator& world, const ZeroSettings& settings)
      : model(on_meta([&] { return FrozenModel(depth, kWidth); })), module(model, world, settings) {
    for (const HalfFrozen& block : model->blocks) model->calls.push_back(module.wrap(block));
    module.initialise(set_value);
  }
  FrozenModel model;
  ShardedModule module;
};

Gradients expected_of(FrozenModel& plain, int ranks) {
  return mean_gradients(*plain, ranks, [&](int r, int) {
    return plain->loss(rows({3, kWidth}, r));
  });
}

void half_frozen(Communicator& world) {
  for (int stage = world.size() > 1 ? 0 : 1; stage <= 3; ++stage) {
    const std::string what = fmt::format("stage {}", stage);
    FrozenModel plain = plain_model(2);
    const std::int64_t before = resident_bytes();
    Sharded sharded(2, world, at_stage(stage));
    sharded.module.run([&] {
                    return sharded.model->loss(rows({3, kWidth}, world.rank()));
                  })
        .backward();
    const std::int64_t measured = resident_bytes() - before;

    const zero::Sharder& sharder = sharded.module.sharder();
    const auto layouts = shard::lay_out(sharder.units(), sharder.parameters(), world.size());
    const auto arithmetic = zero::arithmetic(sharder.settings(), at::kFloat, world.size());
    const auto resident = shard::resident(layouts, static_cast<Stage>(stage), arithmetic);
    require(measured == resident.total(),
            fmt::format("{}: {} resident bytes, {} calculated", what, measured, resident.total()));
    require_gradients(sharded.module, expected_of(plain, world.size()), what);
    require(!sharded.module.gradient("block0.frozen.weight").defined(),
            what + ": frozen, and it has a gradient");
  }
}

// Its frozen half is still needed by the first call when its trained half has all gradients.
void half_frozen_twice(Communicator& world) {
  FrozenModel plain = plain_model(1);
  plain->blocks.push_back(plain->blocks[0]);
  Sharded sharded(1, world, at_stage(3));
  sharded.model->blocks.push_back(sharded.model->blocks[0]);
  sharded.model->calls.push_back(sharded.model->calls[0]);
  for (int pass = 0; pass < 2; ++pass) {
    sharded.module.zero_grad();
    sharded.module.run([&] {
                    return sharded.model->loss(rows({3, kWidth}, world.rank()));
                  })
        .backward();
    require_gradients(sharded.module, expected_of(plain, world.size()), "twice");
  }
}

// Blocks 1 to 6 of 8 have nothing to train.
void frozen_middle(Communicator& world) {
  FrozenModel plain = plain_model(8);
  const auto freeze = [](FrozenModel& model) {
    for (std::size_t i = 1; i < 7; ++i) {
      for (at::Tensor& p : model->blocks[i]->parameters()) p.requires_grad_(false);
    }
  };
  freeze(plain);
  FrozenModel model = on_meta([&] { return FrozenModel(8, kWidth); });
  freeze(model);
  ShardedModule module(model, world, at_stage(3));
  for (const HalfFrozen& block : model->blocks) model->calls.push_back(module.wrap(block));
  module.initialise(set_value);
  const TagPeaks peaks;
  module.run([&] { return model->loss(rows({3, kWidth}, world.rank())); }).backward();
  const zero::Sharder& sharder = module.sharder();
  const std::int64_t block = sharder.unit(0).layout().storage_bytes();
  const std::int64_t root = sharder.unit(sharder.root()).layout().storage_bytes();
  require(peaks.of(Tag::kGathered) <= root + 2 * block,
          fmt::format("{} bytes gathered, expected at most the root and two blocks, {}",
                      peaks.of(Tag::kGathered), root + 2 * block));
  require(sharder.schedule().gathered() == 0, "a unit stays gathered");
  require_gradients(module, expected_of(plain, world.size()), "frozen middle");
}

// --- inputs ---------------------------------------------------------------------------------------

// A frozen block whose input wants a gradient, although the block does not read it.
void ignored_input(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    torch::nn::Sequential model(torch::nn::Linear(3, 3));
    for (at::Tensor& p : model->parameters()) p.requires_grad_(false);
    set_values(*model);
    ShardedModule sharded(model.ptr(), world, at_stage(stage));
    const at::Tensor a = rows({2, 3}, 0);
    auto layer = std::dynamic_pointer_cast<torch::nn::LinearImpl>(model[0]);
    const WrappedUnit call =
        sharded.wrap(model[0], [&](const at::Tensor&) { return layer->forward(a); });
    sharded.initialise();
    at::Tensor b = rows({2, 3}, 1).requires_grad_();
    const at::Tensor twice = b * 2;
    sharded.run([&] { return call(twice).sum() + twice.sum(); }).backward();
    require(b.grad().sum().item<double>() == 12, "the gradient of the other path is wrong");
    require(sharded.sharder().schedule().gathered() == 0, "a unit stays gathered");
  }
}

}  // namespace

std::vector<Trouble> unit_troubles() {
  return {
      {"trouble 7: an fp32 norm among bf16 weights works with masters, and is refused without",
       mixed_types},
      {"trouble 8: half of each block frozen: gradients, and resident bytes as calculated",
       half_frozen},
      {"trouble 8: a block of which half is frozen, called twice", half_frozen_twice},
      {"trouble 9: six frozen blocks in the middle: at most two are gathered at a time",
       frozen_middle},
      {"trouble 10: a frozen unit with an input that it ignores", ignored_input},
  };
}

}  // namespace plimsoll::tests
