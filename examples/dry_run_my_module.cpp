// Foresees a training step of a module with 40 GB of parameters on any machine.
#include <cstdio>
#include <string>

#include "plimsoll/meter.hpp"

namespace {

// One layer of a decoder: attention and a perceptron, each beside a residual stream.
class LayerImpl : public torch::nn::Module {
 public:
  LayerImpl(std::int64_t width, std::int64_t heads) : heads_(heads) {
    norm1_ = register_module("norm1", torch::nn::LayerNorm(std::vector<std::int64_t>{width}));
    norm2_ = register_module("norm2", torch::nn::LayerNorm(std::vector<std::int64_t>{width}));
    qkv_ = register_module("qkv", torch::nn::Linear(width, 3 * width));
    out_ = register_module("out", torch::nn::Linear(width, width));
    up_ = register_module("up", torch::nn::Linear(width, 4 * width));
    down_ = register_module("down", torch::nn::Linear(4 * width, width));
  }

  at::Tensor forward(at::Tensor x) {
    x = x + attention(norm1_(x));
    return x + down_(at::gelu(up_(norm2_(x))));
  }

 private:
  at::Tensor attention(const at::Tensor& x) {
    const auto by_head = [&](const at::Tensor& part) {
      return part.view({x.size(0), x.size(1), heads_, -1}).transpose(1, 2);
    };
    const auto parts = qkv_(x).chunk(3, -1);
    const at::Tensor y = at::scaled_dot_product_attention(by_head(parts[0]), by_head(parts[1]),
                                                          by_head(parts[2]), {}, 0.0, true);
    return out_(y.transpose(1, 2).reshape(x.sizes()));
  }

  std::int64_t heads_;
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
  torch::nn::Linear qkv_{nullptr}, out_{nullptr}, up_{nullptr}, down_{nullptr};
};
TORCH_MODULE(Layer);

}  // namespace

int main() {
  torch::nn::Sequential model = plimsoll::on_meta([] {
    torch::nn::Sequential layers;
    for (int layer = 0; layer < 48; ++layer) layers->push_back(Layer(4096, 32));
    return layers;
  });
  const at::Tensor x = torch::empty({8, 2048, 4096}, torch::device(torch::kMeta));
  const plimsoll::Timeline timeline = plimsoll::dry_run(*model, x);
  for (const auto& phase : plimsoll::timeline::phase_figures(timeline)) {
    std::printf("%-10s start %15ld  peak %15ld  end %15ld\n",
                std::string(plimsoll::timeline::name(phase.key.phase)).c_str(), phase.start,
                phase.peak, phase.end);
  }
}
