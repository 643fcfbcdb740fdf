#include "plimsoll/network/rules/apply.hpp"

#include "plimsoll/network/rules/attention.hpp"
#include "plimsoll/network/rules/bloom_gelu.hpp"
#include "plimsoll/network/rules/convolution.hpp"
#include "plimsoll/network/rules/elementwise.hpp"
#include "plimsoll/network/rules/functions.hpp"
#include "plimsoll/network/rules/kernels.hpp"
#include "plimsoll/network/rules/loss.hpp"
#include "plimsoll/network/rules/normalisation.hpp"
#include "plimsoll/network/rules/numbers.hpp"
#include "plimsoll/network/rules/picks.hpp"
#include "plimsoll/network/rules/products.hpp"
#include "plimsoll/network/rules/softmax.hpp"
#include "plimsoll/network/rules/views.hpp"

namespace plimsoll::network::rules {
namespace {

void apply_split(Autograd& a, const Operation& op, std::vector<Tensor>& values) {
  const Attributes& at = op.attributes;
  Few<Tensor, kFewEdges> parts = split(a, values[op.inputs[0]], at.start, at.dim);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) values[op.outputs[i]] = parts[i];
}

Tensor apply_cat(Autograd& a, const Operation& op, const std::vector<Tensor>& values) {
  std::vector<Tensor> parts;
  for (ValueId v : op.inputs) parts.push_back(values[v]);
  return cat(a, parts, op.attributes.dim);
}

// A constant: no graph. Ids of arange are inputs of the network as far as the ledger goes.
Tensor apply_constant(Autograd& a, const Operation& op) {
  const Attributes& at = op.attributes;
  const DType dtype = op.kind == OpKind::kArange ? DType::kInt64 : at.dtype;
  return a.empty(at.shape, dtype);
}

// Queries times keys, or probabilities times values: in self-attention both have a row per token.
Tensor apply_matmul(Autograd& a, const Tensor& x, const Tensor& y, const Attributes& at) {
  return matmul4(a, x, y, attention_square(x.size(2), x.size(2), at.causal, at.window));
}

// What user code writes besides whole layers.
Tensor apply_single_step(Autograd& a, const Operation& op, std::vector<Tensor>& values) {
  const Attributes& at = op.attributes;
  const auto in = [&](std::size_t i) -> Tensor& { return values[op.inputs[i]]; };
  switch (op.kind) {
    case OpKind::kSelect:
      return select(a, in(0), at.dim);
    case OpKind::kEverySecond:
      return every_second(a, in(0), at.start);
    case OpKind::kStack:
      return stack_last(a, in(0), in(1));
    case OpKind::kPickOne:
      return pick_one(a, in(0), at.dim);
    case OpKind::kSub:
      return sub(a, in(0), in(1));
    case OpKind::kAddInPlace:
      return add_in_place(a, in(0), in(1));
    case OpKind::kScale:
    case OpKind::kScaleInPlace:
      return scale(a, in(0), op.kind == OpKind::kScaleInPlace);
    case OpKind::kDivide:
    case OpKind::kDivideInPlace:
      return divide(a, in(0), op.kind == OpKind::kDivideInPlace);
    case OpKind::kPow3:
      return pow3(a, in(0));
    case OpKind::kBatchedProduct:
      return bmm(a, in(0), in(1), attention_square(in(0).size(1), in(0).size(2), at.causal, 0));
    case OpKind::kBiasedProduct:
      return baddbmm(a, in(1), in(2), attention_square(in(1).size(1), in(1).size(1), at.causal, 0));
    case OpKind::kBloomGelu:
      return bloom_gelu(a, in(0));
    case OpKind::kColumnLinear:
      return addmm(a, in(2), in(0), in(1));
    default:
      break;
  }
  throw InternalError("operation without a rule");
}

// Operations with one result; a table would only hide which arguments each takes.
Tensor apply_one(Autograd& a, const Operation& op, std::vector<Tensor>& values) {
  const Attributes& at = op.attributes;
  const auto in = [&](std::size_t i) -> Tensor& { return values[op.inputs[i]]; };
  const auto maybe = [&](std::size_t i) { return op.inputs.size() > i ? in(i) : Tensor(); };
  switch (op.kind) {
    case OpKind::kArange:
    case OpKind::kFresh:
      return apply_constant(a, op);
    case OpKind::kEmbedding:
      return embedding(a, in(0), in(1));
    case OpKind::kAdd:
      return add(a, in(0), in(1));
    case OpKind::kMul:
      return mul(a, in(0), in(1));
    case OpKind::kMulNumber:
      return mul_number(a, in(0));
    case OpKind::kAddNumber:
      return add_number(a, in(0));
    case OpKind::kNeg:
      return neg(a, in(0));
    case OpKind::kPow2:
      return pow2(a, in(0));
    case OpKind::kMean:
      return mean_last(a, in(0));
    case OpKind::kRsqrt:
      return rsqrt(a, in(0));
    case OpKind::kTo:
      return to(a, in(0), at.dtype);
    case OpKind::kView:
      return view(a, in(0), at.shape);
    case OpKind::kReshape:
      return reshape(a, in(0), at.shape);
    case OpKind::kTranspose:
      return transpose(a, in(0), at.dim, at.dim2);
    case OpKind::kContiguous:
      return contiguous(a, in(0));
    case OpKind::kUnsqueeze:
      return unsqueeze(a, in(0), at.dim);
    case OpKind::kExpand:
      return expand(a, in(0), at.shape);
    case OpKind::kSlice:
      return slice(a, in(0), at.dim, at.start, at.stop);
    case OpKind::kCat:
      return apply_cat(a, op, values);
    case OpKind::kLinear:
      return linear(a, in(0), in(1), maybe(2));
    case OpKind::kKeptLinear:
      return kept_linear(a, in(0), in(1), maybe(2));
    case OpKind::kLayerNorm:
      return layer_norm(a, in(0), maybe(1), maybe(2));
    case OpKind::kRmsNorm:
      return rms_norm(a, in(0), in(1));
    case OpKind::kGelu:
      return gelu(a, in(0));
    case OpKind::kGeluTanh:
      return gelu_tanh(a, in(0));
    case OpKind::kSilu:
      return silu(a, in(0));
    case OpKind::kRelu:
      return relu(a, in(0));
    case OpKind::kReluInPlace:
      return relu_in_place(a, in(0));
    case OpKind::kTanh:
      return tanh(a, in(0));
    case OpKind::kSoftmax:
      return softmax(a, in(0));
    case OpKind::kClamp:
      return clamp(a, in(0));
    case OpKind::kDropout:
      return dropout(a, in(0));
    case OpKind::kAttention:
      return attention(a, in(0), in(1), in(2), maybe(3),
                       {at.kernel, at.number > 0, at.causal, at.grouped, at.window});
    case OpKind::kMatmul:
      return apply_matmul(a, in(0), in(1), at);
    case OpKind::kCrossEntropy:
      return cross_entropy(a, in(0), in(1));
    case OpKind::kConv2d:
      return conv2d(a, in(0), in(1), maybe(2));
    case OpKind::kBatchNorm:
      return batch_norm(a, in(0), in(1), in(2), in(3), in(4));
    case OpKind::kMaxPool2:
      return max_pool2(a, in(0));
    case OpKind::kFlatten:
      return reshape(a, in(0), {in(0).size(0), -1});
    default:
      return apply_single_step(a, op, values);
  }
}

}  // namespace

void apply(Autograd& a, const Operation& op, std::vector<Tensor>& values) {
  if (op.kind == OpKind::kArgument) return a.record_argument(values[op.inputs[0]]);
  if (op.kind == OpKind::kCacheRows)
    return;  // a copy into memory that is there, whatever the dtypes
  if (op.kind == OpKind::kSplit) return apply_split(a, op, values);
  values[op.outputs[0]] = apply_one(a, op, values);
}

}  // namespace plimsoll::network::rules
