#include "tests/differential/one_operation.hpp"

#include <utility>

#include <fmt/format.h>

namespace plimsoll::tests {
namespace {

using network::Attributes;
using network::Builder;
using network::Dims;
using network::DType;
using network::InputKind;
using network::Network;
using network::OpKind;
using network::ValueId;

constexpr std::int64_t kRows = 6;     // of an operand (batch, kRows, kColumns)
constexpr std::int64_t kColumns = 8;  // also the classes of the loss, unless said otherwise
constexpr std::int64_t kHeads = 2;

struct Value {
  ValueId id;
  Dims shape;
};

class OperationMaker {
 public:
  OperationMaker(OpKind kind, Layout layout, DType dtype)
      : kind_(kind), layout_(layout), dtype_(dtype), batch_(layout == Layout::kOneRow ? 1 : 3) {}

  std::vector<OneOperation> make() {
    switch (kind_) {
      case OpKind::kLinear:
      case OpKind::kKeptLinear:
        linears();
        break;
      case OpKind::kConv2d:
      case OpKind::kBatchNorm:
      case OpKind::kMaxPool2:
        if (layout_ == Layout::kContiguous || layout_ == Layout::kOneRow) images();
        break;
      case OpKind::kAttention:
        attentions();
        break;
      case OpKind::kMatmul:
        for (bool grouped : {false, true}) scores(grouped);
        break;
      case OpKind::kColumnLinear:
      case OpKind::kBatchedProduct:
      case OpKind::kBiasedProduct:
        products();
        break;
      case OpKind::kAdd:
      case OpKind::kMul:
      case OpKind::kSub:
        for (const Dims& other : {Dims{batch_, kRows, kColumns}, Dims{kColumns}, Dims{kRows, 1}}) {
          of_two(other);
        }
        break;
      case OpKind::kLayerNorm:
      case OpKind::kRmsNorm:
        norm();
        break;
      case OpKind::kArange:
      case OpKind::kFresh:
      case OpKind::kHold:
      case OpKind::kArgument:
      case OpKind::kEmbedding:
        without_operand();
        break;
      case OpKind::kCacheRows:  // no gradient passes a cache: inference_test runs it
      case OpKind::kCount:
        break;
      default:
        of_one();
    }
    return std::move(made_);
  }

 private:
  ValueId parameter(const Dims& shape) {
    const std::size_t index = g_.network().parameters.size();
    return g_.parameter(fmt::format("p{}.weight", index), shape, dtype_);
  }

  Value operand() {
    const Dims shape{batch_, kRows, kColumns};
    if (layout_ == Layout::kTransposed) {
      return {g_.transpose(parameter({batch_, kColumns, kRows}), 1, 2), shape};
    }
    if (layout_ == Layout::kSliced) {
      return {g_.slice(parameter({batch_, kRows, 2 * kColumns}), 2, 4, 4 + kColumns), shape};
    }
    return {parameter(shape), shape};
  }

  ValueId op(std::vector<ValueId> inputs, const Attributes& attributes = {}) {
    return g_.operation(kind_, std::move(inputs), attributes);
  }

  // Ends the network in a cross entropy over rows of `width` and begins the next one.
  void finish(std::string variant, const Value& x, std::int64_t width = kColumns) {
    const std::int64_t rows = network::element_count(x.shape) / width;
    const ValueId logits = g_.reshape(x.id, {rows, width});
    const ValueId target = g_.input("target", {rows}, DType::kInt64, InputKind::kClasses);
    g_.begin_loss();
    OneOperation one{std::move(variant), g_.finish(logits, g_.cross_entropy(logits, target))};
    one.network.vocabulary = width;
    made_.push_back(std::move(one));
  }

  void linears() {
    constexpr std::int64_t kOut = 4;
    for (bool bias : {false, true}) {
      for (bool matrix : {false, true}) {
        Value x = operand();
        if (matrix) x = {g_.reshape(x.id, {batch_ * kRows, kColumns}), {batch_ * kRows, kColumns}};
        // A region reads one computed value.
        const bool kept = kind_ == OpKind::kKeptLinear;
        if (kept) x.id = g_.neg(x.id);
        const ValueId w = parameter({kOut, kColumns});
        const ValueId b = bias ? parameter({kOut}) : network::kNoValue;
        if (kept) g_.begin_region(/*keep_linears=*/true);
        ValueId y = g_.linear(x.id, w, b);
        if (kept) {
          y = g_.activation(OpKind::kGelu, y);
          g_.end_region(/*keep_random_state=*/false);
        }
        finish(fmt::format("{}, {}", bias ? "bias" : "no bias", matrix ? "matrix" : "batch"),
               {y, {batch_, kRows, kOut}}, kOut);
      }
    }
  }

  void norm() {
    const bool rms = kind_ == OpKind::kRmsNorm;
    for (int weights = rms ? 1 : 0; weights <= (rms ? 1 : 2); ++weights) {
      const Value x = operand();
      const ValueId w = weights > 0 ? parameter({kColumns}) : network::kNoValue;
      const ValueId b = weights > 1 ? parameter({kColumns}) : network::kNoValue;
      const ValueId y = rms ? g_.rms_norm(x.id, w, 1e-5) : g_.layer_norm(x.id, w, b, 1e-5);
      finish(fmt::format("{} of weight and bias", weights), {y, x.shape});
    }
  }

  // 3 channels are read as they are, 5 and 8 are fewer than a block and a whole one.
  void images() {
    for (std::int64_t channels : {3, 5, 8}) {
      const std::string variant = fmt::format("{} channels", channels);
      const Dims shape{batch_, channels, kRows, kColumns};
      if (kind_ == OpKind::kMaxPool2) {
        finish(variant, {op({parameter(shape)}), {batch_, channels, kRows / 2, kColumns / 2}},
               kColumns / 2);
      } else if (kind_ == OpKind::kBatchNorm) {
        const ValueId x = parameter(shape);
        const ValueId w = parameter({channels});
        const ValueId b = parameter({channels});
        const ValueId mean = g_.buffer("running_mean", {channels}, dtype_);
        const ValueId variance = g_.buffer("running_var", {channels}, dtype_, network::Init::kOnes);
        Attributes attributes;
        attributes.number = 1e-5;
        finish(variant, {op({x, w, b, mean, variance}, attributes), shape});
      } else {
        convolutions(variant, shape);
      }
    }
  }

  void convolutions(const std::string& variant, const Dims& shape) {
    for (std::int64_t out : {4, 8}) {
      for (bool bias : {false, true}) {
        std::vector<ValueId> inputs{parameter(shape), parameter({out, shape[1], 3, 3})};
        if (bias) inputs.push_back(parameter({out}));
        finish(fmt::format("{} to {}, {}", variant, out, bias ? "bias" : "no bias"),
               {op(std::move(inputs)), {batch_, out, kRows, kColumns}});
      }
    }
  }

  // Which attention: the kernel's causal mask, none, or a mask of ours for all heads or each.
  enum class Masking { kCausal, kNone, kShared, kPerHead };

  void attentions() {
    for (auto kernel : {network::AttentionKernel::kFlash, network::AttentionKernel::kMath}) {
      for (bool grouped : {false, true}) {
        for (auto masking :
             {Masking::kCausal, Masking::kNone, Masking::kShared, Masking::kPerHead}) {
          attention(kernel, grouped, masking);
        }
      }
    }
  }

  void attention(network::AttentionKernel kernel, bool grouped, Masking masking) {
    const Value x = operand();
    const ValueId q = heads_of(x, kHeads);
    const ValueId k = heads_of(x, grouped ? 1 : kHeads);
    const ValueId v = heads_of(x, grouped ? 1 : kHeads);
    network::AttentionOptions options;
    options.kernel = kernel;
    options.grouped = grouped;
    options.causal = masking != Masking::kNone;
    if (masking == Masking::kShared || masking == Masking::kPerHead) {
      const Dims shape =
          masking == Masking::kShared ? Dims{kRows, kRows} : Dims{1, kHeads, kRows, kRows};
      options.mask = g_.input("mask", shape, dtype_, InputKind::kMask);
      options.scale = 0.25;
    }
    const ValueId y = g_.transpose(g_.attention(q, k, v, options), 1, 2);
    finish(fmt::format("{}{}, masking {}", network::name(kernel), grouped ? ", grouped" : "",
                       static_cast<int>(masking)),
           {y, x.shape});
  }

  // Scores of heads that are repeated for their group, as capped attention makes them.
  void scores(bool grouped) {
    const Value x = operand();
    const ValueId q =
        g_.transpose(g_.reshape(x.id, {batch_, kRows, kHeads, kColumns / kHeads}), 1, 2);
    ValueId k = heads_of(x, grouped ? 1 : kHeads);
    if (grouped) {
      k = g_.expand(g_.unsqueeze(k, 2), {batch_, 1, kHeads, kRows, kColumns / kHeads});
      k = g_.reshape(k, {batch_, kHeads, kRows, kColumns / kHeads});
    }
    const ValueId y = g_.activation(OpKind::kSoftmax, g_.matmul(q, g_.transpose(k, 2, 3), {}));
    finish(grouped ? "grouped" : "", {y, {batch_, kHeads, kRows, kRows}}, kRows);
  }

  // A linear layer of x, as [B, heads, T, H].
  ValueId heads_of(const Value& x, std::int64_t heads) {
    constexpr std::int64_t kHead = kColumns / kHeads;
    const ValueId w = parameter({heads * kHead, kColumns});
    return g_.transpose(g_.view(g_.linear(x.id, w), {batch_, kRows, heads, kHead}), 1, 2);
  }

  void of_two(const Dims& other) {
    const Value x = operand();
    finish("with " + network::to_text(other), {op({x.id, parameter(other)}), x.shape});
  }

  // Products of three operands, or of batches in three dimensions.
  void products() {
    const Value x = operand();
    if (kind_ == OpKind::kColumnLinear) {
      constexpr std::int64_t kOut = 4;
      const ValueId rows = g_.reshape(x.id, {batch_ * kRows, kColumns});
      const ValueId w = parameter({kColumns, kOut});
      return finish("", {op({rows, w, parameter({kOut})}), {batch_ * kRows, kOut}}, kOut);
    }
    const ValueId y = parameter({batch_, kColumns, kRows});
    const Dims square{batch_, kRows, kRows};
    if (kind_ == OpKind::kBatchedProduct) return finish("", {op({x.id, y}), square}, kRows);
    Attributes a;
    a.number = 0.5;
    const ValueId bias = g_.fresh({batch_, 1, kRows}, dtype_);
    finish("", {op({bias, x.id, y}, a), square}, kRows);
  }

  // Ids, constants, and values that code still holds.
  void without_operand() {
    const Value x = operand();
    const ValueId learned = parameter({kColumns});  // so that something learns beside the table
    if (kind_ == OpKind::kFresh) {
      return finish("", {g_.mul(g_.mul(x.id, learned), g_.fresh({kColumns}, dtype_)), x.shape});
    }
    if (kind_ == OpKind::kHold || kind_ == OpKind::kArgument) {
      const ValueId held = g_.mul(x.id, learned);
      const ValueId y = g_.neg(held);
      kind_ == OpKind::kHold ? g_.hold(held) : g_.argument(held);
      return finish("", {y, x.shape});
    }
    const bool range = kind_ == OpKind::kArange;
    const ValueId ids = range ? g_.arange(kRows)
                              : g_.input("ids", {batch_, kRows}, DType::kInt64, InputKind::kTokens);
    const ValueId rows = g_.embedding(ids, parameter({kColumns, kColumns}));
    finish("", {g_.add(g_.mul(x.id, learned), rows), x.shape});
  }

  void of_one() {
    Value x = operand();
    const Dims& shape = x.shape;
    Attributes a;
    a.number = 0.5;
    switch (kind_) {
      case OpKind::kTo:
        a.dtype = dtype_ == DType::kFloat32 ? DType::kBFloat16 : DType::kFloat32;
        return finish("", {op({x.id}, a), shape});
      case OpKind::kView:
        return finish("", {g_.view(x.id, {batch_, kRows, 2, kColumns / 2}), shape});
      case OpKind::kReshape:
        return finish("", {g_.reshape(x.id, {kRows * batch_, kColumns}), shape});
      case OpKind::kFlatten:
        return finish("", {op({x.id}), shape}, kRows * kColumns);
      case OpKind::kTranspose:
        return finish("", {g_.transpose(x.id, 1, 2), {batch_, kColumns, kRows}}, kRows);
      case OpKind::kUnsqueeze:
        return finish("", {g_.unsqueeze(x.id, 1), shape});
      case OpKind::kExpand: {
        const ValueId wide = g_.expand(g_.unsqueeze(x.id, 1), {batch_, 2, kRows, kColumns});
        return finish("", {wide, {batch_, 2, kRows, kColumns}});
      }
      case OpKind::kSlice:
        return finish("", {g_.slice(x.id, 2, 0, 4), {batch_, kRows, 4}}, 4);
      case OpKind::kSplit:
        return finish("", {g_.split(x.id, 4, 2, 2)[1], {batch_, kRows, 4}}, 4);
      case OpKind::kCat:
        return finish("", {g_.cat({x.id, x.id}, 2), {batch_, kRows, 2 * kColumns}}, 2 * kColumns);
      case OpKind::kMean:
        return finish("", {g_.mean(x.id), {batch_, kRows, 1}}, kRows);
      case OpKind::kSelect:
        return finish("", {g_.select(x.id, 1, 2), {batch_, kColumns}});
      case OpKind::kEverySecond:
        return finish("", {op({x.id}), {batch_, kRows, kColumns / 2}}, kColumns / 2);
      case OpKind::kStack:
        return finish("", {op({x.id, parameter(shape)}), {batch_, kRows, kColumns, 2}});
      case OpKind::kPickOne:
        a.dim = 1;
        return finish("", {op({x.id}, a), {batch_, 1, kColumns}});
      case OpKind::kAddInPlace:
        x.id = g_.neg(x.id);
        return finish("", {op({x.id, parameter(shape)}), shape});
      case OpKind::kScaleInPlace:
      case OpKind::kDivideInPlace:
      case OpKind::kReluInPlace:
        x.id = g_.neg(x.id);  // a parameter may not be edited in place
        return finish("", {op({x.id}, a), shape});
      case OpKind::kCrossEntropy:
        return finish("", x);
      default:
        return finish("", {op({x.id}, a), shape});
    }
  }

  const OpKind kind_;
  const Layout layout_;
  const DType dtype_;
  const std::int64_t batch_;
  Builder g_;
  std::vector<OneOperation> made_;
};

}  // namespace

std::string_view name(Layout layout) {
  static constexpr std::array<std::string_view, kLayouts.size()> kNames = {
      "contiguous", "transposed", "sliced", "one row"};
  return kNames.at(static_cast<std::size_t>(layout));
}

std::vector<OneOperation> networks_of(OpKind kind, Layout layout, DType dtype) {
  return OperationMaker(kind, layout, dtype).make();
}

}  // namespace plimsoll::tests
