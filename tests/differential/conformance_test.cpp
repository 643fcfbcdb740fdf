// Every primitive alone: a network of one operation, for several layouts of its operands.
#include <array>
#include <functional>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/differential/differ.hpp"

namespace plimsoll {
namespace {

using network::Attributes;
using network::Builder;
using network::Dims;
using network::DType;
using network::InputKind;
using network::OpKind;
using network::ValueId;

// How the operand of the operation lies in memory.
enum class Layout { kContiguous, kTransposed, kSliced, kOneRow };
constexpr std::array kLayouts = {Layout::kContiguous, Layout::kTransposed, Layout::kSliced,
                                 Layout::kOneRow};

struct Operand {
  ValueId id;
  Dims shape;
};

class OneOperation {
 public:
  explicit OneOperation(DType dtype) : dtype_(dtype) {}

  Operand operand(Layout layout) {
    const std::int64_t batch = layout == Layout::kOneRow ? 1 : 3;
    if (layout == Layout::kTransposed) {
      const ValueId p = parameter({batch, 8, 6});
      return {g_.transpose(p, 1, 2), {batch, 6, 8}};
    }
    if (layout == Layout::kSliced) {
      const ValueId p = parameter({batch, 6, 16});
      return {g_.slice(p, 2, 4, 12), {batch, 6, 8}};
    }
    return {parameter({batch, 6, 8}), {batch, 6, 8}};
  }

  ValueId parameter(const Dims& shape) {
    return g_.parameter(fmt::format("p{}.weight", parameters_++), shape, dtype_);
  }

  // Ends in a cross entropy over rows of `width`.
  network::Network finish(ValueId x, std::int64_t rows, std::int64_t width) {
    const ValueId logits = g_.reshape(x, {rows, width});
    const ValueId target = g_.input("target", {rows}, DType::kInt64, InputKind::kClasses);
    g_.begin_loss();
    network::Network net = g_.finish(logits, g_.cross_entropy(logits, target));
    net.vocabulary = width;
    return net;
  }

  Builder g_;

 private:
  const DType dtype_;
  int parameters_ = 0;
};

std::string compare(const network::Network& net, DType dtype, at::Device device) {
  plan::Job job;
  job.precision = dtype == DType::kFloat32    ? plan::Precision::kFp32
                  : dtype == DType::kBFloat16 ? plan::Precision::kBf16
                                              : plan::Precision::kFp64;
  return tests::text_of(tests::calculated_against(net, job, device));
}

// Operations of one operand that keep its shape.
constexpr std::array kShapeKeeping = {
    OpKind::kMulNumber,  OpKind::kAddNumber, OpKind::kNeg,     OpKind::kPow2, OpKind::kRsqrt,
    OpKind::kGelu,       OpKind::kGeluTanh,  OpKind::kSilu,    OpKind::kRelu, OpKind::kDropout,
    OpKind::kContiguous, OpKind::kTanh,      OpKind::kSoftmax, OpKind::kClamp};

network::Network shape_keeping(OpKind kind, Layout layout, DType dtype) {
  OneOperation one(dtype);
  const Operand x = one.operand(layout);
  Attributes a;
  a.number = 0.5;
  return one.finish(one.g_.operation(kind, {x.id}, a), x.shape[0] * 6, 8);
}

network::Network with_weights(OpKind kind, Layout layout, DType dtype, bool bias) {
  OneOperation one(dtype);
  const Operand x = one.operand(layout);
  const ValueId w = one.parameter(kind == OpKind::kLinear ? Dims{4, 8} : Dims{8});
  const ValueId b = bias ? one.parameter(kind == OpKind::kLinear ? Dims{4} : Dims{8}) : 0;
  const std::int64_t rows = x.shape[0] * 6;
  if (kind == OpKind::kLinear) return one.finish(one.g_.linear(x.id, w, b), rows, 4);
  if (kind == OpKind::kRmsNorm) return one.finish(one.g_.rms_norm(x.id, w, 1e-5), rows, 8);
  return one.finish(one.g_.layer_norm(x.id, w, b, 1e-5), rows, 8);
}

network::Network of_two(OpKind kind, Layout layout, DType dtype, const Dims& other) {
  OneOperation one(dtype);
  const Operand x = one.operand(layout);
  Dims shape = other;
  if (shape.size() == 3) shape[0] = x.shape[0];
  const ValueId y = one.parameter(shape);
  return one.finish(one.g_.operation(kind, {x.id, y}), x.shape[0] * 6, 8);
}

network::Network views(OpKind kind, Layout layout, DType dtype) {
  OneOperation one(dtype);
  const Operand x = one.operand(layout);
  const std::int64_t rows = x.shape[0] * 6;
  switch (kind) {
    case OpKind::kUnsqueeze:
      return one.finish(one.g_.unsqueeze(x.id, 1), rows, 8);
    case OpKind::kSlice:
      return one.finish(one.g_.slice(x.id, 2, 0, 4), rows, 4);
    case OpKind::kSplit:
      return one.finish(one.g_.split(x.id, 4, 2, 2)[1], rows, 4);
    case OpKind::kCat:
      return one.finish(one.g_.cat({x.id, x.id}, 2), rows, 16);
    case OpKind::kMean:
      return one.finish(one.g_.mean(x.id), rows / 6, 6);
    case OpKind::kTo:
      return one.finish(
          one.g_.to(x.id, dtype == DType::kFloat32 ? DType::kBFloat16 : DType::kFloat32), rows, 8);
    default:
      return one.finish(one.g_.transpose(x.id, 1, 2), x.shape[0] * 8, 6);
  }
}

// Weight and bias of a LayerNorm, each there or not.
network::Network bare_layer_norm(bool weight, Layout layout, DType dtype) {
  OneOperation one(dtype);
  const Operand x = one.operand(layout);
  const ValueId w = weight ? one.parameter({8}) : network::kNoValue;
  return one.finish(one.g_.layer_norm(x.id, w, network::kNoValue, 1e-5), x.shape[0] * 6, 8);
}

// Which attention: the kernel's causal mask, none, or a mask of ours for all heads or each.
enum class Masking { kCausal, kNone, kShared, kPerHead };

network::Network heads(network::AttentionKernel kernel, bool grouped, Masking masking,
                       Layout layout, DType dtype) {
  OneOperation one(dtype);
  const Operand x = one.operand(layout);
  const std::int64_t batch = x.shape[0];
  const auto part = [&](std::int64_t count) {
    const ValueId w = one.parameter({count * 4, 8});
    return one.g_.transpose(one.g_.view(one.g_.linear(x.id, w), {batch, 6, count, 4}), 1, 2);
  };
  const ValueId q = part(2);
  const ValueId k = part(grouped ? 1 : 2);
  const ValueId v = part(grouped ? 1 : 2);
  network::AttentionOptions options;
  options.kernel = kernel;
  options.grouped = grouped;
  options.causal = masking != Masking::kNone;
  if (masking == Masking::kShared || masking == Masking::kPerHead) {
    const Dims shape = masking == Masking::kShared ? Dims{6, 6} : Dims{1, 2, 6, 6};
    options.mask = one.g_.input("mask", shape, dtype, InputKind::kMask);
    options.scale = 0.25;
  }
  const ValueId y = one.g_.attention(q, k, v, options);
  return one.finish(one.g_.transpose(y, 1, 2), batch * 6, 8);
}

// Scores of heads that are repeated for their group, as capped attention makes them.
network::Network products(bool grouped, Layout layout, DType dtype) {
  OneOperation one(dtype);
  const Operand x = one.operand(layout);
  const std::int64_t batch = x.shape[0];
  const std::int64_t count = grouped ? 1 : 2;
  const ValueId q = one.g_.transpose(one.g_.reshape(x.id, {batch, 6, 2, 4}), 1, 2);
  const ValueId w = one.parameter({count * 4, 8});
  ValueId k = one.g_.linear(x.id, w);
  k = one.g_.transpose(one.g_.view(k, {batch, 6, count, 4}), 1, 2);
  if (grouped) {
    k = one.g_.expand(one.g_.unsqueeze(k, 2), {batch, 1, 2, 6, 4});
    k = one.g_.reshape(k, {batch, 2, 6, 4});
  }
  const ValueId scores = one.g_.matmul(q, one.g_.transpose(k, 2, 3), {});
  return one.finish(one.g_.activation(OpKind::kSoftmax, scores), batch * 12, 6);
}

void check_all(const std::function<network::Network(Layout, DType)>& make) {
  for (Layout layout : kLayouts) {
    for (DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat64}) {
      CAPTURE(static_cast<int>(layout));
      CAPTURE(network::name(dtype));
      CHECK(compare(make(layout, dtype), dtype, at::kCPU) == "equal");
      CHECK(compare(make(layout, dtype), dtype, at::kMeta) == "equal");
    }
  }
}

}  // namespace

TEST_CASE("conformance: elementwise operations") {
  tests::prepare_library();
  for (OpKind kind : kShapeKeeping) {
    CAPTURE(network::name(kind));
    check_all([&](Layout l, DType d) { return shape_keeping(kind, l, d); });
  }
  for (OpKind kind : {OpKind::kAdd, OpKind::kMul}) {
    for (const Dims& other : {Dims{3, 6, 8}, Dims{8}, Dims{6, 1}}) {
      CAPTURE(network::name(kind));
      CAPTURE(network::to_text(other));
      check_all([&](Layout l, DType d) { return of_two(kind, l, d, other); });
    }
  }
}

TEST_CASE("conformance: linear layers and norms") {
  tests::prepare_library();
  for (bool bias : {false, true}) {
    check_all([&](Layout l, DType d) { return with_weights(OpKind::kLinear, l, d, bias); });
  }
  check_all([&](Layout l, DType d) { return with_weights(OpKind::kRmsNorm, l, d, false); });
  check_all([&](Layout l, DType d) { return with_weights(OpKind::kLayerNorm, l, d, true); });
  for (bool weight : {false, true}) {
    check_all([&](Layout l, DType d) { return bare_layer_norm(weight, l, d); });
  }
}

TEST_CASE("conformance: views, copies, casts, means") {
  tests::prepare_library();
  for (OpKind kind : {OpKind::kTranspose, OpKind::kUnsqueeze, OpKind::kSlice, OpKind::kSplit,
                      OpKind::kCat, OpKind::kMean, OpKind::kTo}) {
    CAPTURE(network::name(kind));
    check_all([&](Layout l, DType d) { return views(kind, l, d); });
  }
}

TEST_CASE("conformance: attention") {
  tests::prepare_library();
  for (auto kernel : {network::AttentionKernel::kFlash, network::AttentionKernel::kMath}) {
    for (bool grouped : {false, true}) {
      for (auto masking : {Masking::kCausal, Masking::kNone, Masking::kShared, Masking::kPerHead}) {
        CAPTURE(network::name(kernel));
        CAPTURE(grouped);
        CAPTURE(static_cast<int>(masking));
        check_all([&](Layout l, DType d) { return heads(kernel, grouped, masking, l, d); });
      }
    }
  }
}

TEST_CASE("conformance: products and softmax of attention") {
  tests::prepare_library();
  for (bool grouped : {false, true}) {
    CAPTURE(grouped);
    check_all([&](Layout l, DType d) { return products(grouped, l, d); });
  }
}

}  // namespace plimsoll
