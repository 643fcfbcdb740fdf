#include "plimsoll/engine/run/library_calls.hpp"

#include <algorithm>
#include <limits>

#include "plimsoll/engine/run/checkpoint.hpp"
#include "plimsoll/engine/run/single_steps.hpp"

namespace plimsoll::engine {
namespace {

using network::AttentionKernel;
using network::Attributes;
using network::Operation;
using network::OpKind;
using Values = std::vector<at::Tensor>;

const at::Tensor& input(const Operation& op, const Values& values, std::size_t i) {
  return values[op.inputs[i]];
}

std::optional<at::Tensor> optional_input(const Operation& op, const Values& values, std::size_t i) {
  if (i >= op.inputs.size()) return std::nullopt;
  return values[op.inputs[i]];
}

at::Tensor constant(const Operation& op, at::Device device) {
  const Attributes& a = op.attributes;
  if (op.kind == OpKind::kArange) {
    return at::arange(a.start, a.start + a.shape[0],
                      at::TensorOptions().dtype(at::kLong).device(device));
  }
  return at::zeros(sizes(a.shape), at::TensorOptions().dtype(scalar_type(a.dtype)).device(device));
}

// Without a mask of the network's a causal one is the kernel's own.
at::Tensor attention(const Operation& op, const Values& values) {
  const at::Tensor& q = input(op, values, 0);
  const at::Tensor& k = input(op, values, 1);
  const at::Tensor& v = input(op, values, 2);
  const Attributes& a = op.attributes;
  std::optional<at::Tensor> mask = optional_input(op, values, 3);
  const bool causal = a.causal && !mask;
  const std::optional<double> scale = a.scale > 0 ? std::optional(a.scale) : std::nullopt;
  if (a.kernel == AttentionKernel::kMath) {
    // What scaled_dot_product_attention does with a bool mask before it chooses a kernel.
    if (mask && mask->scalar_type() == at::kBool) {
      const at::Tensor hidden =
          at::scalar_tensor(-std::numeric_limits<double>::infinity(), q.options());
      mask = at::where(*mask, at::Scalar(0.0), hidden);
    }
    return std::get<0>(at::_scaled_dot_product_attention_math(q, k, v, mask, a.number, causal, {},
                                                              scale, a.grouped));
  }
  return at::scaled_dot_product_attention(q, k, v, mask, a.number, causal, scale, a.grouped);
}

at::Tensor batch_norm(const Operation& op, const Values& values) {
  constexpr double kMomentum = 0.1;
  return at::batch_norm(input(op, values, 0), input(op, values, 1), input(op, values, 2),
                        input(op, values, 3), input(op, values, 4), /*training=*/true, kMomentum,
                        op.attributes.number, /*cudnn_enabled=*/false);
}

void cache_rows(const at::Tensor& cache, const at::Tensor& x) {
  const std::int64_t rows = std::min(cache.size(2), x.size(2));
  const auto last = [rows](const at::Tensor& t) { return t.narrow(2, t.size(2) - rows, rows); };
  last(cache).copy_(last(x));
}

void split(const Operation& op, Values& values) {
  std::vector<at::Tensor> parts =
      input(op, values, 0).split(op.attributes.start, op.attributes.dim);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) values[op.outputs[i]] = std::move(parts[i]);
}

at::Tensor concatenate(const Operation& op, const Values& values) {
  std::vector<at::Tensor> parts;
  for (network::ValueId v : op.inputs) parts.push_back(values[v]);
  return at::cat(parts, op.attributes.dim);
}

// Arithmetic, element by element.
at::Tensor call_elementwise(const Operation& op, const Values& values) {
  const at::Tensor& x = input(op, values, 0);
  const Attributes& a = op.attributes;
  switch (op.kind) {
    case OpKind::kAdd:
      return at::add(x, input(op, values, 1));
    case OpKind::kMul:
      return at::mul(x, input(op, values, 1));
    case OpKind::kMulNumber:
      return at::mul(x, at::Scalar(a.number));
    case OpKind::kAddNumber:
      return at::add(x, at::Scalar(a.number));
    case OpKind::kNeg:
      return at::neg(x);
    case OpKind::kPow2:
      return at::pow(x, 2);
    case OpKind::kMean:
      return at::mean(x, {-1}, /*keepdim=*/true);
    case OpKind::kRsqrt:
      return at::rsqrt(x);
    case OpKind::kTo:
      return x.to(scalar_type(a.dtype));
    case OpKind::kTanh:
      return at::tanh(x);
    case OpKind::kClamp:
      return at::clamp(x, at::Scalar(-a.number), at::Scalar(a.number));
    case OpKind::kGelu:
      return at::gelu(x);
    case OpKind::kGeluTanh:
      return at::gelu(x, "tanh");
    case OpKind::kSilu:
      return at::silu(x);
    case OpKind::kRelu:
      return at::relu(x);
    case OpKind::kReluInPlace:
      return at::relu_(const_cast<at::Tensor&>(x));
    case OpKind::kDropout:
      return at::dropout(x, a.number, /*train=*/true);
    default:
      return call_single_step(op, values);
  }
}

// Views and copies.
at::Tensor call_shape(const Operation& op, const Values& values) {
  const Attributes& a = op.attributes;
  const at::Tensor& x = input(op, values, 0);
  switch (op.kind) {
    case OpKind::kView:
      return x.view(sizes(a.shape));
    case OpKind::kReshape:
      return x.reshape(sizes(a.shape));
    case OpKind::kTranspose:
      return x.transpose(a.dim, a.dim2);
    case OpKind::kContiguous:
      return x.contiguous();
    case OpKind::kUnsqueeze:
      return x.unsqueeze(a.dim);
    case OpKind::kExpand:
      return x.expand(sizes(a.shape));
    case OpKind::kSlice:
      return x.slice(a.dim, a.start, a.stop);
    case OpKind::kCat:
      return concatenate(op, values);
    case OpKind::kFlatten:
      return at::flatten(x, 1);
    default:
      return call_elementwise(op, values);
  }
}

at::Tensor call_one(const Operation& op, const Values& values, at::Device device) {
  const Attributes& a = op.attributes;
  const auto in = [&](std::size_t i) -> const at::Tensor& { return input(op, values, i); };
  switch (op.kind) {
    case OpKind::kArange:
    case OpKind::kFresh:
      return constant(op, device);
    case OpKind::kEmbedding:
      return at::embedding(in(1), in(0));
    case OpKind::kLinear:
      return at::linear(in(0), in(1), optional_input(op, values, 2));
    case OpKind::kKeptLinear:
      return kept_linear(in(0), in(1), optional_input(op, values, 2));
    case OpKind::kLayerNorm:
      return at::layer_norm(in(0), {in(0).size(-1)}, optional_input(op, values, 1),
                            optional_input(op, values, 2), a.number);
    case OpKind::kRmsNorm:
      return at::rms_norm(in(0), {in(0).size(-1)}, in(1), a.number);
    case OpKind::kAttention:
      return attention(op, values);
    case OpKind::kSoftmax:
      return at::softmax(in(0), -1);
    case OpKind::kMatmul:
      return at::matmul(in(0), in(1));
    case OpKind::kCrossEntropy:
      return at::cross_entropy_loss(in(0), in(1));
    case OpKind::kConv2d:
      return at::conv2d(in(0), in(1), optional_input(op, values, 2), /*stride=*/1, /*padding=*/1);
    case OpKind::kBatchNorm:
      return batch_norm(op, values);
    case OpKind::kMaxPool2:
      return at::max_pool2d(in(0), {2, 2});
    default:
      return call_shape(op, values);
  }
}

}  // namespace

at::ScalarType scalar_type(network::DType dtype) {
  using network::DType;
  switch (dtype) {
    case DType::kBool:
      return at::kBool;
    case DType::kUInt8:
      return at::kByte;
    case DType::kInt8:
      return at::kChar;
    case DType::kInt64:
      return at::kLong;
    case DType::kFloat8:
      return at::kFloat8_e4m3fn;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kBFloat16:
      return at::kBFloat16;
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat64:
      return at::kDouble;
  }
  return at::kFloat;
}

std::vector<std::int64_t> sizes(const network::Dims& dims) { return {dims.begin(), dims.end()}; }

void call(const Operation& op, Values& values, at::Device device) {
  if (op.kind == OpKind::kArgument) return;
  if (op.kind == OpKind::kCacheRows) return cache_rows(input(op, values, 0), input(op, values, 1));
  if (op.kind == OpKind::kSplit) return split(op, values);
  values[op.outputs[0]] = call_one(op, values, device);
}

}  // namespace plimsoll::engine
