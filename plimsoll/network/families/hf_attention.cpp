// transformers' attention interfaces: eager, in single operations, and sdpa.
#include <cmath>

#include "plimsoll/network/families/hf_parts.hpp"

namespace plimsoll::network::hf {
namespace {

double scaling(const Context& c) {
  if (c.style.scaled_queries) return 1;
  if (c.a.attention_scale > 0) return c.a.attention_scale;
  return 1 / std::sqrt(static_cast<double>(c.spec.head_dim));
}

AttentionOptions options_of(const Context& c, const LayerFacts& f) {
  AttentionOptions o;
  o.kernel = c.o.kernel;
  o.dropout = c.o.dropout;
  o.causal = c.a.causal;
  o.window = f.window < c.o.sequence ? f.window : 0;
  return o;
}

// [B, K, T, H] -> [B, N, T, H]: repeat_kv.
ValueId repeat_kv(Context& c, ValueId x) {
  const std::int64_t group = c.spec.heads / c.spec.kv_heads;
  if (group == 1) return x;
  const std::int64_t t = c.o.sequence;
  const std::int64_t h = c.spec.head_dim;
  const ValueId wide = c.g.expand(c.g.unsqueeze(x, 2), {c.o.batch, c.spec.kv_heads, group, t, h});
  return c.g.reshape(wide, {c.o.batch, c.spec.heads, t, h});
}

ValueId capped(Context& c, ValueId scores) {
  const double cap = c.a.attention_softcap;
  if (cap == 0) return scores;
  const ValueId small = c.g.activation(OpKind::kTanh, c.g.divide(scores, cap));
  return c.g.scale(small, cap);
}

// Scores are held until the probabilities replace them.
ValueId probabilities(Context& c, ValueId scores, DType dtype) {
  if (c.style.softmax == SoftmaxStyle::kOwn) return c.g.activation(OpKind::kSoftmax, scores);
  const ValueId wide = c.g.activation(OpKind::kSoftmax, c.g.to(scores, DType::kFloat32));
  const ValueId result = c.g.to(wide, dtype);
  c.g.hold(scores);
  return result;
}

}  // namespace

AttentionResult eager_attention(Context& c, const Heads& heads, ValueId mask, const LayerFacts& f) {
  PythonFrame frame(c);
  const AttentionOptions o = options_of(c, f);
  const ValueId k = frame(repeat_kv(c, heads.k));
  const ValueId v = frame(repeat_kv(c, heads.v));
  const bool wide = c.style.softmax == SoftmaxStyle::kWideScores;
  const ValueId q = wide ? c.g.to(heads.q, DType::kFloat32) : heads.q;
  const ValueId keys = c.g.transpose(wide ? c.g.to(k, DType::kFloat32) : k, 2, 3);
  ValueId scores = capped(c, c.g.scale(c.matmul(q, keys, o), scaling(c)));
  if (mask != kNoValue) scores = c.g.add(scores, mask);
  const ValueId p = c.dropout(probabilities(c, scores, c.g.dtype_of(wide ? v : q)));
  ValueId y = c.g.transpose(c.matmul(p, v, o), 1, 2);
  if (c.style.copies_heads_back) y = c.g.contiguous(y);
  return {y, p};
}

AttentionResult sdpa(Context& c, const Heads& heads, ValueId mask, const LayerFacts& f) {
  PythonFrame frame(c);
  AttentionOptions o = options_of(c, f);
  o.mask = mask;
  o.grouped = c.spec.heads != c.spec.kv_heads && mask == kNoValue;
  const bool repeats = c.spec.heads != c.spec.kv_heads && mask != kNoValue;
  const ValueId k = repeats ? frame(repeat_kv(c, heads.k)) : heads.k;
  const ValueId v = repeats ? frame(repeat_kv(c, heads.v)) : heads.v;
  const ValueId narrow_v = c.narrow(v);
  const ValueId narrow_k = c.narrow(k);
  const ValueId y = c.g.attention(c.narrow(heads.q), narrow_k, narrow_v, o);
  const ValueId same = c.g.reshape(y, {c.o.batch, c.spec.heads, c.o.sequence, c.spec.head_dim});
  return {c.g.contiguous(c.g.transpose(same, 1, 2)), kNoValue};
}

}  // namespace plimsoll::network::hf
