#include "tests/engine/operation_cases.hpp"

namespace plimsoll::tests {
namespace {

namespace nn = torch::nn;
namespace functional = torch::nn::functional;

at::Tensor ids(at::IntArrayRef shape) { return torch::zeros(shape, torch::kLong); }

at::Tensor mask(at::IntArrayRef shape) { return torch::ones(shape, torch::kBool); }

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

std::vector<OperationCase> elementwise_cases() {
  using T = at::Tensor;
  return {
      unary("relu", [](const T& x) { return at::relu(x); }),
      unary("gelu", [](const T& x) { return at::gelu(x); }),
      unary("gelu tanh", [](const T& x) { return at::gelu(x, "tanh"); }),
      unary("silu", [](const T& x) { return at::silu(x); }),
      unary("sigmoid", [](const T& x) { return at::sigmoid(x); }),
      unary("tanh", [](const T& x) { return at::tanh(x); }),
      unary("leaky_relu", [](const T& x) { return at::leaky_relu(x); }),
      unary("elu", [](const T& x) { return at::elu(x); }),
      unary("softplus", [](const T& x) { return at::softplus(x); }),
      unary("mish", [](const T& x) { return at::mish(x); }),
      unary("hardswish", [](const T& x) { return at::hardswish(x); }),
      unary("hardsigmoid", [](const T& x) { return at::hardsigmoid(x); }),
      unary("hardtanh", [](const T& x) { return at::hardtanh(x, 0, 6); }),
      unary("relu6", [](const T& x) { return at::relu6(x); }),
      unary("log_sigmoid", [](const T& x) { return at::log_sigmoid(x); }),
      unary("glu", [](const T& x) { return at::glu(x); }),
      unary("relu in place", [](const T& x) { return x.mul(2).relu_(); }),
      unary("silu in place",
            [](const T& x) {
              T y = x.mul(2);
              return at::silu_(y);
            }),
      unary("exp", [](const T& x) { return x.exp(); }),
      unary("log", [](const T& x) { return x.log(); }),
      unary("log1p", [](const T& x) { return x.log1p(); }),
      unary("sqrt", [](const T& x) { return x.sqrt(); }),
      unary("rsqrt", [](const T& x) { return x.rsqrt(); }),
      unary("reciprocal", [](const T& x) { return x.reciprocal(); }),
      unary("sin, cos", [](const T& x) { return x.sin() * x.cos(); }),
      unary("erf", [](const T& x) { return x.erf(); }),
      unary("abs", [](const T& x) { return x.abs(); }),
      unary("neg", [](const T& x) { return -x; }),
      unary("square", [](const T& x) { return x.square(); }),
      unary("pow 2", [](const T& x) { return x.pow(2); }),
      unary("pow 3", [](const T& x) { return x.pow(3); }),
      unary("pow 1.5", [](const T& x) { return x.pow(1.5); }),
      unary("pow of a number", [](const T& x) { return at::pow(2.0, x); }),
      unary("pow of tensors", [](const T& x) { return x.pow(x * 2); }),
      unary("clamp", [](const T& x) { return x.clamp(-1, 1); }),
      unary("clamp_min", [](const T& x) { return x.clamp_min(0); }),
      unary("add number", [](const T& x) { return x + 1; }),
      unary("number minus", [](const T& x) { return 1 - x; }),
      unary("divide by number", [](const T& x) { return x / 3; }),
      unary("number divided", [](const T& x) { return 3 / x; }),
      unary("in place with numbers", [](const T& x) { return x.mul(2).add_(1).mul_(2).div_(3); }),
      unary("sum of itself", [](const T& x) { return x + x; }),
      unary("used three times", [](const T& x) { return x.exp() + x.sin() + x.cos(); }),
      unary("product of itself", [](const T& x) { return x * x; }),
      unary("broadcast sum", [](const T& x) { return x + leaf({8}, x.scalar_type()); }),
      unary("broadcast product", [](const T& x) { return x * leaf({6, 1}, x.scalar_type()); }),
      unary("quotient", [](const T& x) { return x / leaf({4, 6, 8}, x.scalar_type()); }),
      unary("fp32 weight", [](const T& x) { return x * leaf({8}, at::kFloat); }),
      unary("bf16 weight", [](const T& x) { return x * leaf({8}, at::kBFloat16); }),
      unary("fp32 added in place",
            [](const T& x) { return x.mul(2).add_(torch::ones({8}, at::kFloat)); }),
      unary("integer factor", [](const T& x) { return x * torch::ones({8}, at::kLong); }),
      unary("zero-dim tensor", [](const T& x) { return x * torch::scalar_tensor(2.0); }),
      unary("transposed product",
            [](const T& x) { return x.transpose(0, 2) * leaf({8, 6, 4}, x.scalar_type()); }),
      unary("maximum", [](const T& x) { return at::maximum(x, leaf({8}, x.scalar_type())); }),
      unary("minimum", [](const T& x) { return at::minimum(x, leaf({8}, x.scalar_type())); }),
      unary("where", [](const T& x) { return at::where(mask({6, 8}), x, x * 2); }),
      unary("where number", [](const T& x) { return at::where(mask({6, 8}), x, 0.0); }),
      unary("where comparison", [](const T& x) { return at::where(x > 0, x, x * 2); }),
      unary("masked_fill", [](const T& x) { return x.masked_fill(mask({6, 8}), -1e9); }),
      unary("masked_fill in place", [](const T& x) { return x.mul(2).masked_fill_(mask({8}), 0); }),
      unary("addcmul", [](const T& x) { return at::addcmul(x, x, x, 0.5); }),
      unary("addcdiv", [](const T& x) { return at::addcdiv(x, x, x, 0.5); }),
      unary("lerp", [](const T& x) { return at::lerp(x, x * 2, 0.3); }),
      unary("to fp32", [](const T& x) { return x.to(at::kFloat) * 2; }),
      unary("to bf16", [](const T& x) { return x.to(at::kBFloat16) * 2; }),
      unary("dropout", [](const T& x) { return at::dropout(x, 0.1, true); }),
      unary("dropout 0", [](const T& x) { return at::dropout(x, 0.0, true); }),
      unary("dropout off", [](const T& x) { return at::dropout(x, 0.1, false) * 2; }),
      unary("dropout in place",
            [](const T& x) {
              T y = x.mul(2);
              return at::dropout_(y, 0.1, true);
            }),
      unary("alpha dropout", [](const T& x) { return at::alpha_dropout(x, 0.1, true); }),
      unary("feature dropout", [](const T& x) { return at::feature_dropout(x, 0.1, true); }),
      unary("constants made inside",
            [](const T& x) { return x * torch::tensor({1., 2., 3., 4., 5., 6., 7., 8.}); }),
  };
}

std::vector<OperationCase> reduction_cases() {
  using T = at::Tensor;
  return {
      unary("sum", [](const T& x) { return x.sum(); }),
      unary("sum over a dimension", [](const T& x) { return x.sum(1); }),
      unary("sum kept", [](const T& x) { return x.sum({0, 2}, true); }),
      unary("sum in fp32", [](const T& x) { return x.sum(at::kFloat); }),
      unary("mean", [](const T& x) { return x.mean(); }),
      unary("mean over a dimension", [](const T& x) { return x.mean(-1, true); }),
      unary("mean in fp32", [](const T& x) { return x.mean({-1}, true, at::kFloat); }),
      unary("var", [](const T& x) { return x.var(-1, true); }),
      unary("std", [](const T& x) { return x.std(-1, true); }),
      unary("norm", [](const T& x) { return x.norm(); }),
      unary("norm over a dimension", [](const T& x) { return x.norm(2, -1); }),
      unary("linalg vector norm", [](const T& x) { return at::linalg_vector_norm(x); }),
      unary("normalize", [](const T& x) { return functional::normalize(x); }),
      unary("amax", [](const T& x) { return x.amax(-1); }),
      unary("max over a dimension", [](const T& x) { return std::get<0>(x.max(-1)); }),
      unary("logsumexp", [](const T& x) { return x.logsumexp(-1); }),
      unary("cumsum", [](const T& x) { return x.cumsum(1); }),
      unary("topk", [](const T& x) { return std::get<0>(x.topk(2)); }),
      unary("argmax", [](const T& x) { return x.gather(2, x.argmax(2, true)); }),
      unary("softmax", [](const T& x) { return x.softmax(-1); }),
      unary("softmax in fp32", [](const T& x) { return x.softmax(-1, at::kFloat); }),
      unary("softmax over the middle", [](const T& x) { return x.softmax(1); }),
      unary("log_softmax", [](const T& x) { return x.log_softmax(-1); }),
  };
}

std::vector<OperationCase> shape_cases() {
  using T = at::Tensor;
  return {
      unary("reshape that copies", [](const T& x) { return x.transpose(0, 2).reshape({8, 24}); }),
      unary("view", [](const T& x) { return x.view({4, 48}) * 2; }),
      unary("transpose, contiguous", [](const T& x) { return x.transpose(0, 1).contiguous(); }),
      unary("permute", [](const T& x) { return x.permute({2, 0, 1}) * 2; }),
      unary("expand", [](const T& x) { return x.unsqueeze(0).expand({3, 4, 6, 8}) * 2; }),
      unary("repeat", [](const T& x) { return x.repeat({2, 1, 1}); }),
      unary("repeat_interleave", [](const T& x) { return x.repeat_interleave(2, 1); }),
      unary("split", [](const T& x) { return x.split(4, 2)[0] * 2; }),
      unary("chunk both", [](const T& x) { return x.chunk(2, 2)[0] * x.chunk(2, 2)[1]; }),
      unary("slice", [](const T& x) { return x.slice(1, 1, 4) * 2; }),
      unary("select", [](const T& x) { return x.select(1, 2) * 2; }),
      unary("narrow", [](const T& x) { return x.narrow(2, 1, 3) * 2; }),
      unary("unbind", [](const T& x) { return x.unbind(0)[1] * 2; }),
      unary("cat", [](const T& x) { return at::cat({x * 2, x}, -1); }),
      unary("cat of leaves",
            [](const T& x) { return at::cat({leaf({4, 6, 8}, x.scalar_type()), x}); }),
      unary("stack", [](const T& x) { return at::stack({x, x * 2}, 1); }),
      unary("pad", [](const T& x) { return at::pad(x, {1, 2}); }),
      unary("flip", [](const T& x) { return x.flip(1); }),
      unary("roll", [](const T& x) { return x.roll(1, 1); }),
      unary("tril", [](const T& x) { return x.tril(); }),
      unary("triu", [](const T& x) { return x.triu(1); }),
      unary("diagonal", [](const T& x) { return x.diagonal(0, 1, 2) * 2; }),
      unary("gather", [](const T& x) { return x.gather(2, ids({4, 6, 1})); }),
      unary("scatter", [](const T& x) { return x.mul(2).scatter(2, ids({4, 6, 1}), 0.0); }),
      unary("scatter_add", [](const T& x) { return x.mul(2).scatter_add(2, ids({4, 6, 8}), x); }),
      unary("index_select", [](const T& x) { return x.index_select(1, ids({3})); }),
      unary("index", [](const T& x) { return x.index({ids({3})}); }),
      unary("clone", [](const T& x) { return x.clone(); }),
      unary("copy into part",
            [](const T& x) {
              T out = torch::zeros({4, 6, 16}, x.scalar_type());
              out.slice(2, 0, 8).copy_(x);
              return out;
            }),
      unary("fill part",
            [](const T& x) {
              T out = x * 2;
              out.select(0, 0).zero_();
              return out;
            }),
      unary("embedding",
            [](const T& x) { return at::embedding(x.view({24, 8}), ids({5, 3})); }),
      unary("embedding of a transposed gradient",
            [](const T& x) {
              return at::embedding(x.view({24, 8}), ids({5, 3})).transpose(0, 2).contiguous();
            }),
      unary("meshgrid", [](const T& x) {
        return x * at::meshgrid({torch::arange(6), torch::arange(8)}, "ij")[0];
      }),
  };
}

std::vector<OperationCase> product_cases() {
  using T = at::Tensor;
  const auto weight = [](const T& x, at::IntArrayRef shape) { return leaf(shape, x.scalar_type()); };
  return {
      unary("linear", [=](const T& x) { return at::linear(x, weight(x, {5, 8})); }),
      unary("linear with bias",
            [=](const T& x) { return at::linear(x, weight(x, {5, 8}), weight(x, {5})); }),
      unary("linear of a matrix",
            [=](const T& x) { return at::linear(x.view({24, 8}), weight(x, {5, 8})); }),
      unary("linear of a matrix with bias",
            [=](const T& x) {
              return at::linear(x.view({24, 8}), weight(x, {5, 8}), weight(x, {5}));
            }),
      unary("linear of a transposed input",
            [=](const T& x) { return at::linear(x.transpose(0, 1), weight(x, {5, 8})); }),
      unary("linear of a transposed input with bias",
            [=](const T& x) {
              return at::linear(x.transpose(0, 1), weight(x, {5, 8}), weight(x, {5}));
            }),
      unary("matmul", [=](const T& x) { return at::matmul(x, weight(x, {4, 8, 5})); }),
      unary("matmul with a matrix", [=](const T& x) { return at::matmul(x, weight(x, {8, 5})); }),
      unary("matmul with a vector", [=](const T& x) { return at::matmul(x, weight(x, {8})); }),
      unary("bmm", [=](const T& x) { return at::bmm(x, weight(x, {4, 8, 5})); }),
      unary("bmm of transposed",
            [=](const T& x) { return at::bmm(x.transpose(1, 2), weight(x, {4, 6, 5})); }),
      unary("baddbmm",
            [=](const T& x) {
              return at::baddbmm(weight(x, {4, 6, 5}), x, weight(x, {4, 8, 5}));
            }),
      unary("addmm",
            [=](const T& x) { return at::addmm(weight(x, {5}), x.view({24, 8}), weight(x, {8, 5})); }),
      unary("mm", [=](const T& x) { return at::mm(x.view({24, 8}), weight(x, {8, 5})); }),
      unary("dot", [=](const T& x) { return at::dot(x.view({192}), weight(x, {192})); }),
      unary("mv", [=](const T& x) { return at::mv(x.view({24, 8}), weight(x, {8})); }),
      unary("outer", [=](const T& x) { return at::outer(x.view({192}), weight(x, {4})); }),
      unary("einsum",
            [=](const T& x) { return at::einsum("bsd,bsh->bdh", {x, weight(x, {4, 6, 5})}); }),
      unary("bilinear",
            [=](const T& x) { return at::bilinear(x, x, weight(x, {3, 8, 8}), weight(x, {3})); }),
  };
}

std::vector<OperationCase> image_cases() {
  using T = at::Tensor;
  const auto convolution = [](nn::Conv2dOptions options) {
    return [=] { return nn::Conv2d(options); };
  };
  return {
      module("conv2d", {2, 6, 8, 8}, convolution({6, 4, 3})),
      module("conv2d without bias", {2, 6, 8, 8}, convolution(nn::Conv2dOptions(6, 4, 3).bias(false))),
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
      image("adaptive_avg_pool2d 1", [](const T& x) { return at::adaptive_avg_pool2d(x, {1, 1}); }),
      image("adaptive_avg_pool2d", [](const T& x) { return at::adaptive_avg_pool2d(x, {2, 2}); }),
      image("pixel_shuffle", [](const T& x) { return at::pixel_shuffle(x.slice(1, 0, 4), 2); }),
      image("reflection pad", [](const T& x) { return at::pad(x, {1, 1, 1, 1}, "reflect"); }),
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
      unary("one_hot", [](const T& x) { return x * at::one_hot(ids({4, 6}), 8); }),
      // Scratch of the CPU kernel.
      unary("sort", [](const T& x) { return std::get<0>(x.sort()); }),
      unary("index_add", [](const T& x) { return x.mul(2).index_add(0, ids({4}), x); }),
      image("upsample nearest", [](const T& x) { return at::upsample_nearest2d(x, {16, 16}); }),
      image("upsample bilinear",
            [](const T& x) { return at::upsample_bilinear2d(x, {16, 16}, false); }),
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
             [] { return nn::LayerNorm(nn::LayerNormOptions({6, 8})); }),
      module("layer_norm without weights", {4, 6, 8},
             [] {
               return nn::LayerNorm(nn::LayerNormOptions({8}).elementwise_affine(false));
             }),
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
      unary("cross_entropy", [=](const T& x) { return at::cross_entropy_loss(rows(x), ids({24})); }),
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
            [=](const T& x) { return at::cross_entropy_loss(x, ids({4, 8})); }),
      unary("mse_loss", [](const T& x) { return at::mse_loss(x, torch::ones_like(x)); }),
      unary("l1_loss", [](const T& x) { return at::l1_loss(x, torch::ones_like(x)); }),
      unary("smooth_l1_loss", [](const T& x) { return at::smooth_l1_loss(x, torch::ones_like(x)); }),
      unary("huber_loss", [](const T& x) { return at::huber_loss(x, torch::ones_like(x)); }),
      unary("binary_cross_entropy",
            [](const T& x) { return at::binary_cross_entropy(x.sigmoid(), torch::ones_like(x)); }),
      unary("binary_cross_entropy_with_logits",
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
      const at::Tensor q = value(s.heads, s.rows), k = value(s.key_heads, s.keys),
                       v = value(s.key_heads, s.keys);
      std::optional<at::Tensor> added;
      if (s.mask == 1) added = mask({s.rows, s.keys});
      if (s.mask == 2) added = torch::zeros({s.rows, s.keys}, dtype);
      if (s.mask == 3) added = leaf({s.rows, s.keys}, dtype);
      backward(at::scaled_dot_product_attention(q, k, v, added, s.dropout, s.causal, {},
                                                s.heads != s.key_heads));
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
           Setting{.name = "attention, 200 rows, 40 keys", .rows = 200, .keys = 40, .causal = false},
           Setting{.name = "attention, 768 rows", .heads = 1, .key_heads = 1, .rows = 768,
                   .keys = 768},
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
