// bloom: biases by distance (ALiBi) enter the product of queries and keys, dropout is fused with the
// sum, and the activation is a function of its own.
#include <cmath>

#include "plimsoll/network/families/hf_parts.hpp"

namespace plimsoll::network::hf {
namespace {

// [B, N, T, H] -> [B N, T, H].
ValueId batches(Context& c, ValueId x) {
  return c.g.reshape(x, {checked_mul(c.o.batch, c.spec.heads), c.o.sequence, c.spec.head_dim});
}

// Heads of [3, H] in one matrix: query, key and value by select, still [B, N, T, H].
Heads bloom_heads(Context& c, ValueId fused) {
  const Dims shape{c.o.batch, c.o.sequence, c.spec.heads, 3, c.spec.head_dim};
  const ValueId all = c.g.view(fused, shape);
  const auto part = [&](std::int64_t i) { return c.g.transpose(c.g.select(all, 3, i), 1, 2); };
  const ValueId q = part(0);
  const ValueId k = part(1);
  return {q, k, part(2)};
}

ValueId bloom_scores(Context& c, ValueId q, ValueId keys) {
  const ValueId right = c.narrow(keys);
  const ValueId left = c.narrow(q);
  Attributes attributes;
  attributes.number = 1 / std::sqrt(static_cast<double>(c.spec.head_dim));
  return c.g.operation(OpKind::kBiasedProduct, {c.narrow(c.alibi), left, right}, attributes);
}

AttentionResult bloom_attention(Context& c, ValueId x, ValueId residual, const LayerWeights& w) {
  PythonFrame frame(c);
  frame(x);
  const std::int64_t t = c.o.sequence;
  const std::int64_t n = checked_mul(c.o.batch, c.spec.heads);
  const Heads h = bloom_heads(c, frame(c.linear(x, w.qkv)));
  const ValueId q = frame(batches(c, h.q));
  const ValueId k = frame(c.g.transpose(batches(c, h.k), 1, 2));
  const ValueId v = frame(batches(c, h.v));
  const ValueId scores = frame(bloom_scores(c, q, k));
  ValueId weights = c.g.view(scores, {c.o.batch, c.spec.heads, t, t});
  weights = frame(c.g.add(weights, c.tables[0].mask));
  const ValueId wide = c.g.activation(OpKind::kSoftmax, c.g.to(weights, DType::kFloat32));
  const ValueId p = frame(c.dropout(c.g.to(wide, c.g.dtype_of(q))));
  const ValueId rows = c.g.view(p, {n, t, t});
  const ValueId values = c.narrow(v);
  const ValueId y = c.g.operation(OpKind::kBatchedProduct, {c.narrow(rows), values});
  const ValueId heads = c.g.view(y, {c.o.batch, c.spec.heads, t, c.spec.head_dim});
  const ValueId merged = frame(c.g.reshape(c.g.transpose(heads, 1, 2), {c.o.batch, t, -1}));
  const ValueId out = frame(c.linear(merged, w.output));
  return {dropout_add(c, out, residual), p};
}

ValueId bloom_mlp(Context& c, ValueId x, ValueId residual, const LayerWeights& w) {
  PythonFrame frame(c);
  frame(x);
  const ValueId hidden = frame(c.g.operation(OpKind::kBloomGelu, {c.linear(x, w.up)}));
  return dropout_add(c, frame(c.linear(hidden, w.down)), residual);
}

}  // namespace

ValueId bloom_layer(Context& c, ValueId x, const LayerWeights& w) {
  PythonFrame frame(c);
  const ValueId n = norm(c, x, w.attention_in);
  const AttentionResult r = bloom_attention(c, n, x, w);
  c.returned = r.probabilities;
  frame(r.y);
  c.g.hold(n);
  return bloom_mlp(c, frame(norm(c, r.y, w.mlp_in)), r.y, w);
}

}  // namespace plimsoll::network::hf
