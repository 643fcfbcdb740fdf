// falcon: the 7b kind with one key/value head and both branches on one norm, and the rw kind with
// biases by distance (ALiBi). Their attention does not go through the shared interfaces.
#include <cmath>

#include "plimsoll/network/families/hf_parts.hpp"

namespace plimsoll::network::hf {
namespace {

// FalconLinear: x @ weight.T + bias. Autocast does not keep casts of views, which weight.T is.
ValueId falcon_product(Context& c, ValueId x, const Affine& w) {
  PythonFrame frame(c);
  frame(x);
  const ValueId weight = c.narrow(w.weight);
  const ValueId y = frame(c.g.linear(c.narrow(x), weight));
  return w.bias == kNoValue ? y : c.g.add(y, w.bias);
}

ValueId falcon_linear(Context& c, ValueId x, const Affine& w) {
  return c.adapted(x, falcon_product(c, x, w), w);
}

ValueId picked(Context& c, ValueId x, std::int64_t index) {
  Attributes attributes;
  attributes.dim = 2;
  attributes.start = index;
  return c.g.operation(OpKind::kPickOne, {x}, attributes);
}

// [B, T, heads, H] -> [B, heads, T, H]; the reshape is a view of what is there.
ValueId placed(Context& c, ValueId x, std::int64_t heads) {
  return c.g.reshape(c.g.transpose(x, 1, 2), {c.o.batch, heads, c.o.sequence, c.spec.head_dim});
}

Heads one_key_head(Context& c, ValueId fused) {
  const std::int64_t n = c.spec.heads;
  const ValueId all = c.g.view(fused, c.heads_shape(n + 2));
  const ValueId q = c.g.slice(all, 2, 0, n);
  const ValueId k = picked(c, all, n);
  const ValueId v = picked(c, all, n + 1);
  return {q, k, v};
}

Heads all_key_heads(Context& c, ValueId fused) {
  const Dims shape{c.o.batch, c.o.sequence, c.spec.heads, 3, c.spec.head_dim};
  const ValueId all = c.g.view(fused, shape);
  const ValueId q = c.g.select(all, 3, 0);
  const ValueId k = c.g.select(all, 3, 1);
  return {q, k, c.g.select(all, 3, 2)};
}

Heads falcon_heads(Context& c, ValueId fused) {
  const bool one = c.spec.kv_heads == 1 && c.spec.heads > 1;
  const Heads h = one ? one_key_head(c, fused) : all_key_heads(c, fused);
  const ValueId q = placed(c, h.q, c.spec.heads);
  const ValueId k = placed(c, h.k, c.spec.kv_heads);
  return {q, k, placed(c, h.v, c.spec.kv_heads)};
}

AttentionOptions options_of(const Context& c) {
  AttentionOptions o;
  o.kernel = c.o.kernel;
  o.causal = true;
  o.mask = c.tables[0].mask;
  return o;
}

// Key/value heads are broadcast, which only the library's math kernel does. Dropout is ALiBi's alone.
ValueId falcon_sdpa(Context& c, const Heads& h) {
  AttentionOptions o = options_of(c);
  if (c.spec.heads != c.spec.kv_heads) o.kernel = AttentionKernel::kMath;
  if (c.alibi != kNoValue) {
    o.dropout = c.o.dropout;
  } else if (o.kernel == AttentionKernel::kMath && c.spec.heads == c.spec.kv_heads) {
    o.kernel = AttentionKernel::kFlash;
  }
  if (c.alibi != kNoValue) o.mask = c.narrow(o.mask);
  const ValueId v = c.narrow(h.v);
  const ValueId k = c.narrow(h.k);
  return c.g.attention(c.narrow(h.q), k, v, o);
}

// Scores are divided in place.
AttentionResult plain_eager(Context& c, const Heads& h, DType dtype) {
  const AttentionOptions o = options_of(c);
  ValueId scores = c.matmul(h.q, c.g.transpose(h.k, 2, 3), o);
  const double root = std::sqrt(static_cast<double>(c.spec.head_dim));
  scores = c.g.with_number(OpKind::kDivideInPlace, scores, root);
  const ValueId masked = c.g.to(c.g.add(scores, c.tables[0].mask), dtype);
  const ValueId p = c.g.activation(OpKind::kSoftmax, masked);
  c.g.hold(scores);
  return {c.matmul(p, h.v, o), p};
}

// Biases are added twice: by themselves and inside the mask, as transformers does.
AttentionResult alibi_eager(Context& c, PythonFrame& frame, const Heads& h, DType dtype) {
  const AttentionOptions o = options_of(c);
  const ValueId product = frame(c.matmul(h.q, c.g.transpose(h.k, 2, 3), o));
  const ValueId scores = frame(c.g.to(product, DType::kFloat32));
  const Dims shape{c.o.batch, c.spec.heads, 1, c.o.sequence};
  ValueId biased = c.g.add(scores, c.g.view(c.alibi, shape));
  const double norm = 1 / std::sqrt(static_cast<double>(c.spec.head_dim));
  biased = frame(c.g.with_number(OpKind::kScaleInPlace, biased, norm));
  const ValueId masked = c.g.to(c.g.add(biased, c.tables[0].mask), dtype);
  const ValueId p = frame(c.dropout(c.g.activation(OpKind::kSoftmax, masked)));
  return {c.matmul(p, h.v, o), p};
}

AttentionResult falcon_attention(Context& c, ValueId x, const LayerWeights& w) {
  PythonFrame frame(c);
  frame(x);
  Heads h = falcon_heads(c, frame(falcon_linear(c, x, w.qkv)));
  if (c.alibi == kNoValue) rotate(c, frame, h, c.tables[0]);
  for (ValueId v : {h.q, h.k, h.v}) frame(v);
  AttentionResult r;
  const DType dtype = c.g.dtype_of(x);
  if (!c.eager()) {
    r.y = falcon_sdpa(c, h);
  } else {
    r = c.alibi == kNoValue ? plain_eager(c, h, dtype) : alibi_eager(c, frame, h, dtype);
  }
  frame(r.probabilities);
  const ValueId rows = c.g.reshape(c.g.transpose(r.y, 1, 2), {c.o.batch, c.o.sequence, -1});
  r.y = falcon_linear(c, rows, w.output);
  return r;
}

ValueId falcon_mlp(Context& c, ValueId x, const LayerWeights& w) {
  PythonFrame frame(c);
  frame(x);
  const ValueId hidden = activation(c, falcon_linear(c, x, w.up));
  return falcon_linear(c, hidden, w.down);
}

}  // namespace

ValueId falcon_layer(Context& c, ValueId x, const LayerWeights& w) {
  PythonFrame frame(c);
  const ValueId n = frame(norm(c, x, w.attention_in));
  const AttentionResult r = falcon_attention(c, n, w);
  c.returned = r.probabilities;
  frame(r.y);
  if (c.a.parallel) {
    const ValueId z = falcon_mlp(c, n, w);
    return dropout_add(c, c.g.operation(OpKind::kAddInPlace, {z, r.y}), x);
  }
  const ValueId y = frame(dropout_add(c, r.y, x));
  const ValueId m = frame(norm(c, y, w.mlp_in));
  return dropout_add(c, falcon_mlp(c, m, w), y);
}

}  // namespace plimsoll::network::hf
