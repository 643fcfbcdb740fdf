// Trains a module of one's own on two ranks, ZeRO stage 3: each rank holds half of parameters, gradients
// and optimizer states, and whole layers only while it computes with them.
#include <fmt/format.h>

#include "plimsoll/zero.hpp"

class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(std::int64_t width) {
    up = register_module("up", torch::nn::Linear(width, 4 * width));
    down = register_module("down", torch::nn::Linear(4 * width, width));
  }
  at::Tensor forward(const at::Tensor& x) { return x + down->forward(at::gelu(up->forward(x))); }
  torch::nn::Linear up{nullptr}, down{nullptr};
};
TORCH_MODULE(Block);

class ModelImpl : public torch::nn::Module {
 public:
  ModelImpl(std::int64_t vocabulary, std::int64_t width, int depth) {
    tokens = register_module("tokens", torch::nn::Embedding(vocabulary, width));
    for (int i = 0; i < depth; ++i) {
      blocks.push_back(register_module(fmt::format("block{}", i), Block(width)));
    }
  }
  at::Tensor loss(const at::Tensor& ids, const at::Tensor& targets) {
    at::Tensor x = tokens->forward(ids);
    for (const plimsoll::WrappedUnit& call : calls) x = call(x);  // instead of block->forward(x)
    return at::cross_entropy_loss(at::linear(x, tokens->weight).flatten(0, 1), targets.flatten());
  }
  torch::nn::Embedding tokens{nullptr};
  std::vector<Block> blocks;
  std::vector<plimsoll::WrappedUnit> calls;
};
TORCH_MODULE(Model);

constexpr std::int64_t kVocabulary = 101;

int train(plimsoll::Communicator& world) {
  auto model = plimsoll::on_meta([] { return Model(kVocabulary, 32, 3); });  // no memory yet
  plimsoll::ShardedModule sharded = plimsoll::fully_shard(model, world);
  for (const Block& block : model->blocks) model->calls.push_back(sharded.wrap(block));
  sharded.initialise([](const std::string&, at::Tensor values) { values.normal_(0, 0.05); });
  plimsoll::ShardOptimizer optimizer(sharded.sharder(), plimsoll::Optimizer::kAdamW,
                                     {.learning_rate = 0.01});

  // Each rank has its own rows: it learns to name the token that follows.
  const at::Tensor ids = at::arange(world.rank() * 50, world.rank() * 50 + 50).view({5, 10});
  double first = 0;
  double loss = 0;
  for (int step = 0; step < 60; ++step) {
    const at::Tensor value = sharded.run([&] { return model->loss(ids, ids + 1); });
    value.backward();
    optimizer.step({});
    sharded.zero_grad();
    loss = value.item<double>();
    if (step == 0) first = loss;
  }
  if (world.rank() == 0) fmt::print("{} ranks, loss {:.2f} -> {:.2f}\n", world.size(), first, loss);
  return loss < first / 2 ? 0 : 1;
}

int main(int argc, char** argv) {
  return plimsoll::launch(argc, argv, 2, [](plimsoll::Communicator& world) {
    at::manual_seed(1);  // the same values on every rank
    return train(world);
  });
}
