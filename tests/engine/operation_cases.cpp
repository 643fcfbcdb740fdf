// Elementwise operations, reductions, views.
#include "tests/engine/operation_cases.hpp"

namespace plimsoll::tests {
namespace {

namespace functional = torch::nn::functional;

std::vector<OperationCase> activation_cases() {
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
  };
}

std::vector<OperationCase> broadcast_cases() {
  using T = at::Tensor;
  return {
      unary("broadcast sum", [](const T& x) { return x + leaf({8}, x.scalar_type()); }),
      unary("broadcast product",
            [](const T& x) {
              return x * leaf({6, 1}, x.scalar_type());
            }),
      unary("quotient",
            [](const T& x) {
              return x / leaf({4, 6, 8}, x.scalar_type());
            }),
      unary("fp32 weight", [](const T& x) { return x * leaf({8}, at::kFloat); }),
      unary("bf16 weight", [](const T& x) { return x * leaf({8}, at::kBFloat16); }),
      unary("fp32 added in place",
            [](const T& x) { return x.mul(2).add_(torch::ones({8}, at::kFloat)); }),
      unary("integer factor", [](const T& x) { return x * torch::ones({8}, at::kLong); }),
      unary("zero-dim tensor", [](const T& x) { return x * torch::scalar_tensor(2.0); }),
      unary("transposed product",
            [](const T& x) {
              return x.transpose(0, 2) * leaf({8, 6, 4}, x.scalar_type());
            }),
      unary("maximum", [](const T& x) { return at::maximum(x, leaf({8}, x.scalar_type())); }),
      unary("minimum", [](const T& x) { return at::minimum(x, leaf({8}, x.scalar_type())); }),
      unary("where",
            [](const T& x) {
              return at::where(mask({6, 8}), x, x * 2);
            }),
      unary("where number",
            [](const T& x) {
              return at::where(mask({6, 8}), x, 0.0);
            }),
      unary("where comparison", [](const T& x) { return at::where(x > 0, x, x * 2); }),
      unary("masked_fill",
            [](const T& x) {
              return x.masked_fill(mask({6, 8}), -1e9);
            }),
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
            [](const T& x) {
              return x * torch::tensor({1., 2., 3., 4., 5., 6., 7., 8.});
            }),
  };
}

}  // namespace

std::vector<OperationCase> elementwise_cases() {
  std::vector<OperationCase> cases = activation_cases();
  for (OperationCase& one : broadcast_cases()) cases.push_back(std::move(one));
  return cases;
}

std::vector<OperationCase> reduction_cases() {
  using T = at::Tensor;
  return {
      unary("sum", [](const T& x) { return x.sum(); }),
      unary("sum over a dimension", [](const T& x) { return x.sum(1); }),
      unary("sum kept",
            [](const T& x) {
              return x.sum({0, 2}, true);
            }),
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
      unary("softmax of a transposed input",
            [](const T& x) { return x.transpose(0, 1).softmax(-1).transpose(0, 1).contiguous(); }),
      unary(
          "log_softmax of a transposed input",
          [](const T& x) { return x.transpose(0, 2).log_softmax(1).transpose(0, 1).contiguous(); }),
      unary("log_softmax", [](const T& x) { return x.log_softmax(-1); }),
  };
}

std::vector<OperationCase> shape_cases() {
  using T = at::Tensor;
  return {
      unary("reshape that copies",
            [](const T& x) {
              return x.transpose(0, 2).reshape({8, 24});
            }),
      unary("view",
            [](const T& x) {
              return x.view({4, 48}) * 2;
            }),
      unary("transpose, contiguous", [](const T& x) { return x.transpose(0, 1).contiguous(); }),
      unary("permute",
            [](const T& x) {
              return x.permute({2, 0, 1}) * 2;
            }),
      unary("expand",
            [](const T& x) {
              return x.unsqueeze(0).expand({3, 4, 6, 8}) * 2;
            }),
      unary("repeat",
            [](const T& x) {
              return x.repeat({2, 1, 1});
            }),
      unary("repeat_interleave", [](const T& x) { return x.repeat_interleave(2, 1); }),
      unary("split", [](const T& x) { return x.split(4, 2)[0] * 2; }),
      unary("chunk both", [](const T& x) { return x.chunk(2, 2)[0] * x.chunk(2, 2)[1]; }),
      unary("slice", [](const T& x) { return x.slice(1, 1, 4) * 2; }),
      unary("select", [](const T& x) { return x.select(1, 2) * 2; }),
      unary("narrow", [](const T& x) { return x.narrow(2, 1, 3) * 2; }),
      unary("unbind", [](const T& x) { return x.unbind(0)[1] * 2; }),
      unary("cat",
            [](const T& x) {
              return at::cat({x * 2, x}, -1);
            }),
      unary("cat of leaves",
            [](const T& x) {
              return at::cat({leaf({4, 6, 8}, x.scalar_type()), x});
            }),
      unary("stack",
            [](const T& x) {
              return at::stack({x, x * 2}, 1);
            }),
      unary("pad",
            [](const T& x) {
              return at::pad(x, {1, 2});
            }),
      unary("flip", [](const T& x) { return x.flip(1); }),
      unary("roll", [](const T& x) { return x.roll(1, 1); }),
      unary("tril", [](const T& x) { return x.tril(); }),
      unary("triu", [](const T& x) { return x.triu(1); }),
      unary("diagonal", [](const T& x) { return x.diagonal(0, 1, 2) * 2; }),
      unary("gather",
            [](const T& x) {
              return x.gather(2, ids({4, 6, 1}));
            }),
      unary("scatter",
            [](const T& x) {
              return x.mul(2).scatter(2, ids({4, 6, 1}), 0.0);
            }),
      unary("scatter_add",
            [](const T& x) {
              return x.mul(2).scatter_add(2, ids({4, 6, 8}), x);
            }),
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
            [](const T& x) {
              return at::embedding(x.view({24, 8}), ids({5, 3}));
            }),
      unary("embedding of a transposed gradient",
            [](const T& x) {
              return at::embedding(x.view({24, 8}), ids({5, 3})).transpose(0, 2).contiguous();
            }),
      unary("meshgrid",
            [](const T& x) {
              return x * at::meshgrid({torch::arange(6), torch::arange(8)}, "ij")[0];
            }),
  };
}

}  // namespace plimsoll::tests
