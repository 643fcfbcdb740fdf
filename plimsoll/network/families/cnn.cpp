// A small image classifier: 3x3 convolutions, optional BatchNorm, ReLU, optional pooling, a linear.
#include <fmt/format.h>

#include "plimsoll/network/families/families.hpp"

namespace plimsoll::network {
namespace {

struct Stage {
  ValueId weight = kNoValue;
  ValueId bias = kNoValue;
  ValueId norm_weight = kNoValue;
  ValueId norm_bias = kNoValue;
  ValueId running_mean = kNoValue;
  ValueId running_var = kNoValue;
};

Stage stage_weights(Builder& g, const NetworkSpec& spec, DType dtype, std::int64_t in,
                    std::int64_t out, std::size_t index) {
  const std::string conv = fmt::format("conv.{}", index);
  const std::string norm = fmt::format("norm.{}", index);
  Stage s;
  s.weight = g.parameter(conv + ".weight", {out, in, 3, 3}, dtype);
  if (spec.conv_bias) s.bias = g.parameter(conv + ".bias", {out}, dtype, Init::kZeros);
  if (!spec.batch_norm) return s;
  s.norm_weight = g.parameter(norm + ".weight", {out}, dtype, Init::kOnes);
  s.norm_bias = g.parameter(norm + ".bias", {out}, dtype, Init::kZeros);
  s.running_mean = g.buffer(norm + ".running_mean", {out}, dtype);
  s.running_var = g.buffer(norm + ".running_var", {out}, dtype, Init::kOnes);
  g.buffer(norm + ".num_batches_tracked", {}, DType::kInt64);
  return s;
}

ValueId run_stage(Builder& g, const NetworkSpec& spec, ValueId x, const Stage& s) {
  std::vector<ValueId> inputs{x, s.weight};
  if (s.bias != kNoValue) inputs.push_back(s.bias);
  x = g.operation(OpKind::kConv2d, inputs);
  if (spec.batch_norm) {
    Attributes attributes;
    attributes.number = spec.norm_eps;
    x = g.operation(OpKind::kBatchNorm,
                    {x, s.norm_weight, s.norm_bias, s.running_mean, s.running_var}, attributes);
  }
  return g.activation(spec.relu_in_place ? OpKind::kReluInPlace : OpKind::kRelu, x);
}

}  // namespace

Network build_cnn(const NetworkSpec& spec, const BuildOptions& options) {
  Builder g;
  const ValueId image = g.input("image", {options.batch, 3, spec.image, spec.image}, options.dtype,
                                InputKind::kImage);
  const ValueId classes = g.input("classes", {options.batch}, DType::kInt64, InputKind::kClasses);
  std::vector<Stage> stages;
  std::int64_t channels = 3;
  for (std::int64_t out : spec.channels) {
    g.enter(fmt::format("stage.{}", stages.size()), static_cast<std::int32_t>(stages.size()));
    stages.push_back(stage_weights(g, spec, options.dtype, channels, out, stages.size()));
    channels = out;
  }
  const std::int64_t side = spec.pool_last ? spec.image / 2 : spec.image;
  const std::int64_t features = checked_mul(channels, checked_mul(side, side));
  g.enter("head", -1);
  const ValueId weight = g.parameter("fc.weight", {spec.classes, features}, options.dtype);
  const ValueId bias = g.parameter("fc.bias", {spec.classes}, options.dtype, Init::kZeros);

  ValueId x = image;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    g.enter(fmt::format("stage.{}", i), static_cast<std::int32_t>(i));
    x = run_stage(g, spec, x, stages[i]);
  }
  g.enter("head", -1);
  if (spec.pool_last) x = g.operation(OpKind::kMaxPool2, {x});
  const ValueId logits = g.linear(g.operation(OpKind::kFlatten, {x}), weight, bias);
  g.begin_loss();
  g.enter("loss", -1);
  const bool cast = options.dtype != options.loss_dtype;
  const ValueId loss = g.cross_entropy(cast ? g.to(logits, options.loss_dtype) : logits, classes);
  Network network = g.finish(logits, loss);
  network.vocabulary = spec.classes;
  return network;
}

}  // namespace plimsoll::network
