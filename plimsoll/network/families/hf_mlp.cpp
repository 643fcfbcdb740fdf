// The MLP module of a layer and its activation functions.
#include <cmath>
#include <numbers>

#include "plimsoll/network/families/hf_parts.hpp"

namespace plimsoll::network::hf {
namespace {

// 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), left operands first.
ValueId composed_gelu(Context& c, ValueId x) {
  PythonFrame frame(c);
  frame(x);
  const ValueId half = c.g.scale(x, 0.5);
  const ValueId cube = c.g.scale(c.g.operation(OpKind::kPow3, {x}), 0.044715);
  const ValueId inner = c.g.scale(c.g.add(x, cube), std::sqrt(2 / std::numbers::pi));
  const ValueId curve = c.g.add_number(c.g.activation(OpKind::kTanh, inner), 1);
  return c.g.mul(half, curve);
}

ValueId gated(Context& c, ValueId x, const LayerWeights& w) {
  const ValueId gate = activation(c, c.linear(x, w.gate));
  return c.linear(c.g.mul(gate, c.linear(x, w.up)), w.down);
}

// phi3: one matrix, two halves; the frame keeps the gate, and with it the whole result.
ValueId fused_gate(Context& c, ValueId x, const LayerWeights& w) {
  PythonFrame frame(c);
  const ValueId both = c.linear(x, w.gate_up);
  const std::vector<ValueId> halves = c.g.split(both, c.spec.feed_forward, 2, 2);
  const ValueId gate = frame(halves[0]);
  const ValueId product = frame(c.g.mul(halves[1], activation(c, gate)));
  return c.linear(product, w.down);
}

}  // namespace

ValueId activation(Context& c, ValueId x) {
  if (c.style.composed_gelu && c.spec.activation == OpKind::kGeluTanh) return composed_gelu(c, x);
  PythonFrame frame(c);
  const ValueId y = c.g.activation(c.spec.activation, frame(x));
  return c.a.squared_activation ? c.g.pow2(frame(y)) : y;
}

ValueId plain_mlp(Context& c, ValueId x, const LayerWeights& w) {
  const ValueId hidden = activation(c, c.linear(x, w.up));
  return c.linear(c.dropout_if(c.style.activation_dropout, hidden), w.down);
}

ValueId mlp(Context& c, ValueId x, const LayerWeights& w) {
  PythonFrame frame(c);
  frame(x);
  if (c.a.fused_gate_up) return fused_gate(c, x, w);
  if (c.a.gated) return gated(c, x, w);
  return plain_mlp(c, x, w);
}

}  // namespace plimsoll::network::hf
