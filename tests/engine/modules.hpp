// Small torch::nn modules that the engine's tests train. Letters: B batch, S sequence, D width,
// H heads, V vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::tests {

enum class Activation { kGelu, kSilu, kRelu };
enum class Attention { kChosen, kMath };  // what libtorch chooses, or the product form

struct GptShape {
  std::int64_t width = 128;
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t vocabulary = 1000;
  std::int64_t sequence = 64;
  bool bias = false;
  double dropout = 0;
  Activation activation = Activation::kGelu;
  Attention attention = Attention::kChosen;
};

inline GptShape small_gpt() {
  return {.width = 64, .layers = 2, .heads = 4, .vocabulary = 100, .sequence = 32};
}

inline torch::nn::Linear linear(std::int64_t in, std::int64_t out, bool bias = false) {
  return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias));
}

inline torch::nn::LayerNorm layer_norm(std::int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

inline at::Tensor attend(Attention form, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& v, bool grouped = false) {
  if (form == Attention::kChosen) {
    return at::scaled_dot_product_attention(q, k, v, {}, 0.0, true, {}, grouped);
  }
  return std::get<0>(
      at::_scaled_dot_product_attention_math(q, k, v, {}, 0.0, true, {}, {}, grouped));
}

class GptBlockImpl : public torch::nn::Module {
 public:
  explicit GptBlockImpl(const GptShape& shape) : shape_(shape) {
    const std::int64_t width = shape.width;
    norm1_ = register_module("norm1", layer_norm(width));
    qkv_ = register_module("qkv", linear(width, 3 * width, shape.bias));
    projection_ = register_module("projection", linear(width, width, shape.bias));
    norm2_ = register_module("norm2", layer_norm(width));
    up_ = register_module("up", linear(width, 4 * width, shape.bias));
    down_ = register_module("down", linear(4 * width, width, shape.bias));
  }

  at::Tensor forward(at::Tensor x_BSD) {
    x_BSD = x_BSD + drop(attention(norm1_(x_BSD)));
    x_BSD = x_BSD + drop(down_(activate(up_(norm2_(x_BSD)))));
    return x_BSD;
  }

 private:
  at::Tensor drop(const at::Tensor& x) { return at::dropout(x, shape_.dropout, is_training()); }

  at::Tensor activate(const at::Tensor& x) {
    switch (shape_.activation) {
      case Activation::kGelu:
        return at::gelu(x);
      case Activation::kSilu:
        return at::silu(x);
      case Activation::kRelu:
        return at::relu(x);
    }
    return x;
  }

  at::Tensor attention(const at::Tensor& x_BSD) {
    const std::int64_t batch = x_BSD.size(0), sequence = x_BSD.size(1), width = x_BSD.size(2);
    const std::vector<at::Tensor> parts = qkv_(x_BSD).split(width, 2);
    const auto by_head = [&](const at::Tensor& part) {
      return part.view({batch, sequence, shape_.heads, width / shape_.heads}).transpose(1, 2);
    };
    const at::Tensor out =
        attend(shape_.attention, by_head(parts[0]), by_head(parts[1]), by_head(parts[2]));
    return projection_(out.transpose(1, 2).contiguous().view({batch, sequence, width}));
  }

  GptShape shape_;
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
  torch::nn::Linear qkv_{nullptr}, projection_{nullptr}, up_{nullptr}, down_{nullptr};
};
TORCH_MODULE(GptBlock);

// The MiniGPT of the published reference run: learned positions, tied head.
class GptImpl : public torch::nn::Module {
 public:
  explicit GptImpl(const GptShape& shape) {
    token_ = register_module("token", torch::nn::Embedding(shape.vocabulary, shape.width));
    position_ = register_module("position", torch::nn::Embedding(shape.sequence, shape.width));
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
      blocks_.push_back(register_module("block" + std::to_string(layer), GptBlock(shape)));
    }
    norm_ = register_module("norm", layer_norm(shape.width));
  }

  at::Tensor forward(const at::Tensor& ids_BS) {
    const at::Tensor positions = torch::arange(ids_BS.size(1), torch::kLong);
    at::Tensor x_BSD = token_(ids_BS) + position_(positions);
    for (GptBlock& block : blocks_) x_BSD = block(x_BSD);
    return at::linear(norm_(x_BSD), token_->weight);
  }

 private:
  torch::nn::Embedding token_{nullptr}, position_{nullptr};
  std::vector<GptBlock> blocks_;
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Gpt);

enum class RmsForm { kHuggingFace, kLibtorch };

struct LlamaShape {
  std::int64_t width = 64;
  std::int64_t layers = 2;
  std::int64_t heads = 4;
  std::int64_t key_heads = 2;
  std::int64_t hidden = 160;
  std::int64_t vocabulary = 257;
  std::int64_t sequence = 32;
  RmsForm norm = RmsForm::kHuggingFace;
  Attention attention = Attention::kChosen;
};

class RmsNormImpl : public torch::nn::Module {
 public:
  RmsNormImpl(std::int64_t width, RmsForm form) : form_(form) {
    weight_ = register_parameter("weight", torch::ones({width}));
  }

  at::Tensor forward(const at::Tensor& x) {
    if (form_ == RmsForm::kLibtorch) return at::rms_norm(x, weight_.sizes(), weight_, 1e-5);
    at::Tensor wide = x.to(torch::kFloat);
    const at::Tensor variance = wide.pow(2).mean(-1, true);
    wide = wide * torch::rsqrt(variance + 1e-5);
    return weight_ * wide.to(x.scalar_type());
  }

 private:
  RmsForm form_;
  at::Tensor weight_;
};
TORCH_MODULE(RmsNorm);

inline at::Tensor rotate_half(const at::Tensor& x) {
  const std::int64_t half = x.size(-1) / 2;
  return at::cat({-x.slice(-1, half), x.slice(-1, 0, half)}, -1);
}

class LlamaBlockImpl : public torch::nn::Module {
 public:
  explicit LlamaBlockImpl(const LlamaShape& shape) : shape_(shape) {
    const std::int64_t width = shape.width, head = width / shape.heads;
    norm1_ = register_module("norm1", RmsNorm(width, shape.norm));
    q_ = register_module("q", linear(width, width));
    k_ = register_module("k", linear(width, shape.key_heads * head));
    v_ = register_module("v", linear(width, shape.key_heads * head));
    o_ = register_module("o", linear(width, width));
    norm2_ = register_module("norm2", RmsNorm(width, shape.norm));
    gate_ = register_module("gate", linear(width, shape.hidden));
    up_ = register_module("up", linear(width, shape.hidden));
    down_ = register_module("down", linear(shape.hidden, width));
  }

  at::Tensor forward(at::Tensor x, const at::Tensor& cosine, const at::Tensor& sine) {
    x = x + attention(norm1_(x), cosine, sine);
    const at::Tensor y = norm2_(x);
    return x + down_(at::silu(gate_(y)) * up_(y));
  }

 private:
  at::Tensor attention(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
    const std::int64_t batch = x.size(0), sequence = x.size(1);
    const auto by_head = [&](const at::Tensor& y, std::int64_t heads) {
      return y.view({batch, sequence, heads, -1}).transpose(1, 2);
    };
    at::Tensor q = by_head(q_(x), shape_.heads);
    at::Tensor k = by_head(k_(x), shape_.key_heads);
    const at::Tensor v = by_head(v_(x), shape_.key_heads);
    q = q * cosine + rotate_half(q) * sine;
    k = k * cosine + rotate_half(k) * sine;
    const at::Tensor out = attend(shape_.attention, q, k, v, true);
    return o_(out.transpose(1, 2).reshape({batch, sequence, shape_.width}));
  }

  LlamaShape shape_;
  RmsNorm norm1_{nullptr}, norm2_{nullptr};
  torch::nn::Linear q_{nullptr}, k_{nullptr}, v_{nullptr}, o_{nullptr};
  torch::nn::Linear gate_{nullptr}, up_{nullptr}, down_{nullptr};
};
TORCH_MODULE(LlamaBlock);

// Rotary positions, grouped key and value heads, untied head.
class LlamaImpl : public torch::nn::Module {
 public:
  explicit LlamaImpl(const LlamaShape& shape) {
    const std::int64_t head = shape.width / shape.heads;
    token_ = register_module("token", torch::nn::Embedding(shape.vocabulary, shape.width));
    cosine_ = register_buffer("cosine", torch::ones({shape.sequence, head}));
    sine_ = register_buffer("sine", torch::zeros({shape.sequence, head}));
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
      blocks_.push_back(register_module("block" + std::to_string(layer), LlamaBlock(shape)));
    }
    norm_ = register_module("norm", RmsNorm(shape.width, shape.norm));
    head_ = register_module("head", linear(shape.width, shape.vocabulary));
  }

  at::Tensor forward(const at::Tensor& ids_BS) {
    at::Tensor x_BSD = token_(ids_BS);
    for (LlamaBlock& block : blocks_) x_BSD = block(x_BSD, cosine_, sine_);
    return head_(norm_(x_BSD));
  }

 private:
  torch::nn::Embedding token_{nullptr};
  at::Tensor cosine_, sine_;
  std::vector<LlamaBlock> blocks_;
  RmsNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(Llama);

inline at::Tensor next_token_loss(const at::Tensor& logits_BSV, const at::Tensor& targets_BS) {
  const std::int64_t vocabulary = logits_BSV.size(-1);
  return torch::nn::functional::cross_entropy(logits_BSV.view({-1, vocabulary}),
                                              targets_BS.view(-1));
}

}  // namespace plimsoll::tests
