// A user's module with everything that sharding meets: a tied head, blocks, dropout, sizes that no
// number of ranks divides. Letters: B batch, T sequence, D width, V vocabulary.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::tests {

struct TinyShape {
  std::int64_t width = 5;
  std::int64_t layers = 3;
  std::int64_t vocabulary = 7;
  std::int64_t sequence = 4;
  double dropout = 0;
};

class TinyBlockImpl : public torch::nn::Module {
 public:
  explicit TinyBlockImpl(const TinyShape& shape) : dropout_(shape.dropout) {
    const std::int64_t d = shape.width;
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({d})));
    up = register_module("up", torch::nn::Linear(d, 4 * d + 1));
    down = register_module("down", torch::nn::Linear(4 * d + 1, d));
    scale = register_parameter("scale", torch::ones({1}));
  }

  at::Tensor forward(const at::Tensor& x_BTD) {
    const at::Tensor hidden = down->forward(at::gelu(up->forward(norm->forward(x_BTD))));
    return x_BTD + at::dropout(hidden, dropout_, is_training()) * scale;
  }

  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear up{nullptr};
  torch::nn::Linear down{nullptr};
  at::Tensor scale;

 private:
  double dropout_;
};
TORCH_MODULE(TinyBlock);

class TinyModelImpl : public torch::nn::Module {
 public:
  using Call = std::function<at::Tensor(const at::Tensor&)>;

  explicit TinyModelImpl(const TinyShape& shape) {
    tokens = register_module("tokens", torch::nn::Embedding(shape.vocabulary, shape.width));
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i), TinyBlock(shape)));
      calls.emplace_back(
          [block = blocks.back()](const at::Tensor& x) mutable { return block->forward(x); });
    }
    norm =
        register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width})));
    offset = register_buffer("offset", torch::zeros({shape.width}));
  }

  at::Tensor logits(const at::Tensor& ids_BT) {
    at::Tensor x = tokens->forward(ids_BT);
    x = x + offset.to(x.scalar_type());
    for (const Call& call : calls) x = call(x);
    return at::linear(norm->forward(x), tokens->weight);
  }

  at::Tensor loss(const at::Tensor& ids_BT, const at::Tensor& targets_BT) {
    const at::Tensor logits_BTV = logits(ids_BT);
    return at::cross_entropy_loss(logits_BTV.flatten(0, 1), targets_BT.flatten());
  }

  torch::nn::Embedding tokens{nullptr};
  std::vector<TinyBlock> blocks;
  std::vector<Call> calls;  // what logits() calls instead of the blocks' forward
  torch::nn::LayerNorm norm{nullptr};
  at::Tensor offset;
};
TORCH_MODULE(TinyModel);

// The rows of one rank in one micro-batch of one step.
struct Batch {
  at::Tensor ids, targets;
};

inline Batch batch_of(const TinyShape& shape, int step, int micro_batch, int rank) {
  constexpr std::int64_t kRows = 2;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(
      static_cast<std::uint64_t>(1 + step + 100 * micro_batch + 10000 * rank));
  const auto draw = [&] {
    return at::randint(shape.vocabulary, {kRows, shape.sequence}, generator, at::kLong);
  };
  const at::Tensor ids = draw();
  return {ids, draw()};
}

}  // namespace plimsoll::tests
