// Products, layers, losses, optimizers, and what is not exact.
#include "tests/engine/operation_cases.hpp"

namespace plimsoll::tests {
namespace {

namespace nn = torch::nn;

// A module made, converted and run.
template <class Make>
OperationCase module(std::string name, std::vector<std::int64_t> shape, Make make) {
  return {std::move(name), [=](at::ScalarType dtype) {
            auto made = make();
            made->to(dtype);
            backward(made(inner(shape, dtype)));
          }};
}

template <class Optimizer, class Options>
OperationCase optimizer(std::string name, Options options) {
  return {std::move(name), [=](at::ScalarType dtype) {
            std::vector<at::Tensor> parameters{leaf({5, 7}, dtype), leaf({3}, dtype)};
            Optimizer steps(parameters, options);
            for (int step = 0; step < 2; ++step) {
              backward(parameters[0] * 2);
              backward(parameters[1] * 2);
              steps.step();
              steps.zero_grad();
            }
          }};
}

}  // namespace

std::vector<OperationCase> product_cases() {
  using T = at::Tensor;
  const auto weight = [](const T& x, at::IntArrayRef shape) {
    return leaf(shape, x.scalar_type());
  };
  return {
      unary("linear",
            [=](const T& x) {
              return at::linear(x, weight(x, {5, 8}));
            }),
      unary("linear with bias",
            [=](const T& x) {
              return at::linear(x, weight(x, {5, 8}), weight(x, {5}));
            }),
      unary("linear of a matrix",
            [=](const T& x) {
              return at::linear(x.view({24, 8}), weight(x, {5, 8}));
            }),
      unary("linear of a matrix with bias",
            [=](const T& x) {
              return at::linear(x.view({24, 8}), weight(x, {5, 8}), weight(x, {5}));
            }),
      unary("linear of a transposed input",
            [=](const T& x) {
              return at::linear(x.transpose(0, 1), weight(x, {5, 8}));
            }),
      unary("linear of a transposed input with bias",
            [=](const T& x) {
              return at::linear(x.transpose(0, 1), weight(x, {5, 8}), weight(x, {5}));
            }),
      unary("matmul",
            [=](const T& x) {
              return at::matmul(x, weight(x, {4, 8, 5}));
            }),
      unary("matmul with a matrix",
            [=](const T& x) {
              return at::matmul(x, weight(x, {8, 5}));
            }),
      unary("matmul with a vector", [=](const T& x) { return at::matmul(x, weight(x, {8})); }),
      unary("bmm",
            [=](const T& x) {
              return at::bmm(x, weight(x, {4, 8, 5}));
            }),
      unary("bmm of transposed",
            [=](const T& x) {
              return at::bmm(x.transpose(1, 2), weight(x, {4, 6, 5}));
            }),
      unary("bmm of a broadcast gradient",
            [=](const T& x) {
              return at::bmm(x, weight(x, {4, 8, 20})).sum();
            }),
      unary("bmm of columns",
            [=](const T& x) {
              return at::bmm(x.slice(2, 0, 8, 2), weight(x, {4, 8, 40}).slice(1, 0, 8, 2));
            }),
      unary("mm of a broadcast gradient",
            [=](const T& x) {
              return at::mm(x.view({24, 8}), weight(x, {8, 5})).sum();
            }),
      unary("mm of a column",
            [=](const T& x) {
              return at::mm(x.view({24, 8}).slice(1, 0, 8, 2), weight(x, {4, 1}));
            }),
      unary("addmm of a broadcast gradient",
            [=](const T& x) {
              return at::addmm(weight(x, {5}), x.view({24, 8}), weight(x, {8, 5})).sum();
            }),
      unary("baddbmm",
            [=](const T& x) {
              return at::baddbmm(weight(x, {4, 6, 5}), x, weight(x, {4, 8, 5}));
            }),
      unary("addmm",
            [=](const T& x) {
              return at::addmm(weight(x, {5}), x.view({24, 8}), weight(x, {8, 5}));
            }),
      unary("mm",
            [=](const T& x) {
              return at::mm(x.view({24, 8}), weight(x, {8, 5}));
            }),
      unary("dot", [=](const T& x) { return at::dot(x.view({192}), weight(x, {192})); }),
      unary("mv",
            [=](const T& x) {
              return at::mv(x.view({24, 8}), weight(x, {8}));
            }),
      unary("outer", [=](const T& x) { return at::outer(x.view({192}), weight(x, {4})); }),
      unary("einsum",
            [=](const T& x) {
              return at::einsum("bsd,bsh->bdh", {x, weight(x, {4, 6, 5})});
            }),
      unary("bilinear",
            [=](const T& x) {
              return at::bilinear(x, x, weight(x, {3, 8, 8}), weight(x, {3}));
            }),
  };
}

std::vector<OperationCase> image_cases() {
  using T = at::Tensor;
  const auto convolution = [](nn::Conv2dOptions options) {
    return [=] { return nn::Conv2d(options); };
  };
  return {
      module("conv2d", {2, 6, 8, 8}, convolution({6, 4, 3})),
      module("conv2d without bias", {2, 6, 8, 8},
             convolution(nn::Conv2dOptions(6, 4, 3).bias(false))),
      module("conv2d padded", {2, 6, 8, 8}, convolution(nn::Conv2dOptions(6, 4, 3).padding(1))),
      module("conv2d of colors", {2, 3, 8, 8}, convolution(nn::Conv2dOptions(3, 16, 3).padding(1))),
      module("conv2d of full blocks", {2, 16, 8, 8},
             convolution(nn::Conv2dOptions(16, 32, 3).padding(1))),
      module("conv2d of parts of blocks", {3, 12, 7, 9},
             convolution(nn::Conv2dOptions(12, 20, 3).padding(1))),
      module("conv2d of a large image", {1, 16, 48, 48},
             convolution(nn::Conv2dOptions(16, 8, 3).padding(1))),
      module("conv2d 5x5", {2, 16, 9, 9}, convolution(nn::Conv2dOptions(16, 16, 5).padding(2))),
      module("conv2d 1x1", {2, 6, 8, 8}, convolution({6, 4, 1})),
      module("conv2d of one image", {1, 6, 8, 8}, convolution({6, 4, 3})),
      module("conv1d", {2, 6, 8}, [] { return nn::Conv1d(nn::Conv1dOptions(6, 4, 3)); }),
      image("max_pool2d", [](const T& x) { return at::max_pool2d(x, 2); }),
      image("avg_pool2d", [](const T& x) { return at::avg_pool2d(x, 2); }),
      image("adaptive_avg_pool2d 1",
            [](const T& x) {
              return at::adaptive_avg_pool2d(x, {1, 1});
            }),
      image("adaptive_avg_pool2d",
            [](const T& x) {
              return at::adaptive_avg_pool2d(x, {2, 2});
            }),
      image("pixel_shuffle", [](const T& x) { return at::pixel_shuffle(x.slice(1, 0, 4), 2); }),
      image("reflection pad",
            [](const T& x) {
              return at::pad(x, {1, 1, 1, 1}, "reflect");
            }),
  };
}

std::vector<OperationCase> inexact_cases() {
  using T = at::Tensor;
  const auto convolution = [](nn::Conv2dOptions options) {
    return [=] { return nn::Conv2d(options); };
  };
  return {
      // Other backward formulas for tensors without storage.
      unary("max", [](const T& x) { return x.max(); }),
      unary("prod", [](const T& x) { return x.prod(); }),
      // Counts on the CPU, compares on other devices.
      unary("one_hot",
            [](const T& x) {
              return x * at::one_hot(ids({4, 6}), 8);
            }),
      // Scratch of the CPU kernel.
      unary("sort", [](const T& x) { return std::get<0>(x.sort()); }),
      unary("index_add", [](const T& x) { return x.mul(2).index_add(0, ids({4}), x); }),
      image("upsample nearest",
            [](const T& x) {
              return at::upsample_nearest2d(x, {16, 16});
            }),
      image("upsample bilinear",
            [](const T& x) {
              return at::upsample_bilinear2d(x, {16, 16}, false);
            }),
      // Copies that oneDNN decides on.
      module("conv2d strided", {2, 6, 8, 8},
             convolution(nn::Conv2dOptions(6, 4, 3).padding(1).stride(2))),
      module("conv2d depthwise", {2, 6, 8, 8}, convolution(nn::Conv2dOptions(6, 6, 3).groups(6))),
      module("conv2d dilated", {2, 6, 8, 8}, convolution(nn::Conv2dOptions(6, 4, 3).dilation(2))),
      module("transposed convolution", {2, 6, 8, 8},
             [] { return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(6, 4, 3)); }),
  };
}

std::vector<OperationCase> norm_cases() {
  return {
      module("layer_norm", {4, 6, 8}, [] { return nn::LayerNorm(nn::LayerNormOptions({8})); }),
      module("layer_norm over two dimensions", {4, 6, 8},
             [] {
               return nn::LayerNorm(nn::LayerNormOptions({6, 8}));
             }),
      module("layer_norm without weights", {4, 6, 8},
             [] { return nn::LayerNorm(nn::LayerNormOptions({8}).elementwise_affine(false)); }),
      unary("layer_norm of a transposed input, transposed gradient",
            [](const at::Tensor& x) {
              const auto weight = leaf({8}, x.scalar_type()), bias = leaf({8}, x.scalar_type());
              return at::layer_norm(x.transpose(0, 1), {8}, weight, bias)
                  .transpose(1, 2)
                  .contiguous();
            }),
      unary("layer_norm with fp32 weights",
            [](const at::Tensor& x) {
              return at::layer_norm(x, {8}, leaf({8}, at::kFloat), leaf({8}, at::kFloat));
            }),
      unary("layer_norm with frozen weights",
            [](const at::Tensor& x) {
              const at::Tensor weight = torch::ones({8}, x.scalar_type());
              return at::layer_norm(x, {8}, weight, weight);
            }),
      unary("rms_norm",
            [](const at::Tensor& x) { return at::rms_norm(x, {8}, leaf({8}, x.scalar_type())); }),
      unary("rms_norm without weight", [](const at::Tensor& x) { return at::rms_norm(x, {8}); }),
      module("batch_norm", {2, 6, 8, 8}, [] { return nn::BatchNorm2d(6); }),
      module("batch_norm of rows", {24, 8}, [] { return nn::BatchNorm1d(8); }),
      module("batch_norm in evaluation", {2, 6, 8, 8},
             [] {
               nn::BatchNorm2d norm(6);
               norm->eval();
               return norm;
             }),
      module("batch_norm without statistics", {2, 6, 8, 8},
             [] { return nn::BatchNorm2d(nn::BatchNormOptions(6).track_running_stats(false)); }),
      module("batch_norm without weights", {2, 6, 8, 8},
             [] { return nn::BatchNorm2d(nn::BatchNormOptions(6).affine(false)); }),
      module("group_norm", {2, 6, 8, 8}, [] { return nn::GroupNorm(nn::GroupNormOptions(3, 6)); }),
      module("instance_norm", {2, 6, 8, 8}, [] { return nn::InstanceNorm2d(6); }),
  };
}

std::vector<OperationCase> loss_cases() {
  using T = at::Tensor;
  const auto rows = [](const T& x) { return x.view({24, 8}); };
  return {
      unary("cross_entropy",
            [=](const T& x) { return at::cross_entropy_loss(rows(x), ids({24})); }),
      unary("cross_entropy summed",
            [=](const T& x) {
              return at::cross_entropy_loss(rows(x), ids({24}), {}, at::Reduction::Sum);
            }),
      unary("cross_entropy unreduced",
            [=](const T& x) {
              return at::cross_entropy_loss(rows(x), ids({24}), {}, at::Reduction::None);
            }),
      unary("cross_entropy smoothed",
            [=](const T& x) {
              return at::cross_entropy_loss(rows(x), ids({24}), {}, at::Reduction::Mean, -100, 0.1);
            }),
      unary("cross_entropy in fp32",
            [=](const T& x) { return at::cross_entropy_loss(rows(x).to(at::kFloat), ids({24})); }),
      unary("cross_entropy of images",
            [=](const T& x) {
              return at::cross_entropy_loss(x, ids({4, 8}));
            }),
      unary("mse_loss", [](const T& x) { return at::mse_loss(x, torch::ones_like(x)); }),
      unary("l1_loss", [](const T& x) { return at::l1_loss(x, torch::ones_like(x)); }),
      unary("smooth_l1_loss",
            [](const T& x) { return at::smooth_l1_loss(x, torch::ones_like(x)); }),
      unary("huber_loss", [](const T& x) { return at::huber_loss(x, torch::ones_like(x)); }),
      unary("binary_cross_entropy",
            [](const T& x) { return at::binary_cross_entropy(x.sigmoid(), torch::ones_like(x)); }),
      unary(
          "binary_cross_entropy_with_logits",
          [](const T& x) { return at::binary_cross_entropy_with_logits(x, torch::ones_like(x)); }),
      unary("kl_div",
            [](const T& x) { return at::kl_div(x.log_softmax(-1), torch::ones_like(x)); }),
  };
}

std::vector<OperationCase> attention_cases() {
  struct Setting {
    const char* name;
    std::int64_t heads = 4, key_heads = 4, rows = 16, keys = 16, head = 8;
    bool causal = true;
    int mask = 0;  // 1 bool, 2 of q's dtype, 3 that needs a gradient
    double dropout = 0;
    bool leaves = false;
  };
  const auto make = [](const Setting& s) {
    return OperationCase{s.name, [s](at::ScalarType dtype) {
                           const auto value = [&](std::int64_t heads, std::int64_t rows) {
                             if (s.leaves) return leaf({2, heads, rows, s.head}, dtype);
                             return inner({2, rows, heads, s.head}, dtype).transpose(1, 2);
                           };
                           const at::Tensor q = value(s.heads, s.rows),
                                            k = value(s.key_heads, s.keys),
                                            v = value(s.key_heads, s.keys);
                           std::optional<at::Tensor> added;
                           if (s.mask == 1) added = mask({s.rows, s.keys});
                           if (s.mask == 2) added = torch::zeros({s.rows, s.keys}, dtype);
                           if (s.mask == 3) added = leaf({s.rows, s.keys}, dtype);
                           backward(at::scaled_dot_product_attention(
                               q, k, v, added, s.dropout, s.causal, {}, s.heads != s.key_heads));
                         }};
  };
  std::vector<OperationCase> cases;
  for (const Setting& setting : {
           Setting{"attention"},
           Setting{.name = "attention, not causal", .causal = false},
           Setting{.name = "attention, bool mask", .causal = false, .mask = 1},
           Setting{.name = "attention, added mask", .causal = false, .mask = 2},
           Setting{.name = "attention, trained mask", .causal = false, .mask = 3},
           Setting{.name = "attention, dropout", .dropout = 0.1},
           Setting{.name = "attention, grouped", .key_heads = 2},
           Setting{.name = "attention, grouped, dropout", .key_heads = 2, .dropout = 0.1},
           Setting{.name = "attention, leaves", .leaves = true},
           Setting{.name = "attention, 191 rows", .rows = 191, .keys = 191},
           Setting{
               .name = "attention, 200 rows, 40 keys", .rows = 200, .keys = 40, .causal = false},
           Setting{
               .name = "attention, 768 rows", .heads = 1, .key_heads = 1, .rows = 768, .keys = 768},
           Setting{.name = "attention, one head", .heads = 1, .key_heads = 1},
           Setting{.name = "attention, head of 24", .rows = 50, .keys = 50, .head = 24},
       }) {
    cases.push_back(make(setting));
  }
  return cases;
}

std::vector<OperationCase> optimizer_cases() {
  using namespace torch::optim;
  return {
      optimizer<SGD>("SGD", SGDOptions(0.1)),
      optimizer<SGD>("SGD with momentum", SGDOptions(0.1).momentum(0.9)),
      optimizer<Adam>("Adam", AdamOptions(1e-3)),
      optimizer<Adam>("Adam with weight decay", AdamOptions(1e-3).weight_decay(0.1)),
      optimizer<Adam>("Adam, amsgrad", AdamOptions(1e-3).amsgrad(true)),
      optimizer<AdamW>("AdamW", AdamWOptions(1e-3)),
      optimizer<Adagrad>("Adagrad", AdagradOptions(1e-2)),
      optimizer<RMSprop>("RMSprop", RMSpropOptions(1e-2)),
  };
}

}  // namespace plimsoll::tests
