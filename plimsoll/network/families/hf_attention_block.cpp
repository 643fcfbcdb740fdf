// The attention module of a layer: projections, norms of queries and keys, rotary positions, one of
// the attention interfaces, output projection.
#include <cmath>

#include "plimsoll/network/families/hf_parts.hpp"

namespace plimsoll::network::hf {
namespace {

ValueId placed(Context& c, ValueId x) {
  return c.style.rotary == RotaryStyle::kGptj ? x : c.g.transpose(x, 1, 2);
}

// A projection as heads; a norm of all heads or of rows comes on the way.
ValueId projected(Context& c, ValueId x, const Affine& w, const std::vector<Affine>& norms,
                  std::int64_t heads) {
  ValueId y = c.linear(x, w);
  if (!norms.empty() && c.style.qk_norm == QkNormPlace::kOnWhole) y = norm(c, y, norms[0]);
  y = c.g.view(y, c.heads_shape(heads));
  if (!norms.empty() && c.style.qk_norm == QkNormPlace::kOnRows) y = norm(c, y, norms[0]);
  return placed(c, y);
}

Heads separate(Context& c, ValueId x, const LayerWeights& w) {
  Heads h;
  h.q = projected(c, x, w.q, w.q_norm, c.spec.heads);
  h.k = projected(c, x, w.k, w.k_norm, c.spec.kv_heads);
  const ValueId v = c.g.view(c.linear(x, w.v), c.heads_shape(c.spec.kv_heads));
  h.v = c.g.transpose(v, 1, 2);
  return h;
}

// opt: queries are scaled as they come; keys and values are projected before either is reshaped.
Heads separate_scaled(Context& c, ValueId x, const LayerWeights& w) {
  const double scale = 1 / std::sqrt(static_cast<double>(c.spec.head_dim));
  const auto heads = [&](ValueId y) {
    return c.g.transpose(c.g.view(y, c.heads_shape(c.spec.heads)), 1, 2);
  };
  const ValueId q = heads(c.g.scale(c.linear(x, w.q), scale));
  const ValueId k = c.linear(x, w.k);
  const ValueId v = c.linear(x, w.v);
  return {q, heads(k), heads(v)};
}

Heads split_in_order(Context& c, ValueId y) {
  const auto heads = [&](ValueId part) {
    return c.g.transpose(c.g.view(part, c.heads_shape(c.spec.heads)), 1, 2);
  };
  const std::vector<ValueId> parts = c.g.split(y, c.spec.width, 2, 3);
  const ValueId k = heads(parts[1]);
  const ValueId v = heads(parts[2]);
  return {heads(parts[0]), k, v};
}

Heads slices(Context& c, ValueId y) {
  const std::int64_t queries = checked_mul(c.spec.heads, c.spec.head_dim);
  const std::int64_t keys = checked_mul(c.spec.kv_heads, c.spec.head_dim);
  const ValueId q = c.g.slice(y, 2, 0, queries);
  const ValueId k = c.g.slice(y, 2, queries, queries + keys);
  const ValueId v = c.g.slice(y, 2, queries + keys, queries + 2 * keys);
  const auto heads = [&](ValueId part, std::int64_t count) {
    return c.g.transpose(c.g.view(part, c.heads_shape(count)), 1, 2);
  };
  const ValueId all_q = heads(q, c.spec.heads);
  const ValueId all_k = heads(k, c.spec.kv_heads);
  return {all_q, all_k, heads(v, c.spec.kv_heads)};
}

Heads chunks(Context& c, ValueId y) {
  const std::int64_t h = c.spec.head_dim;
  const Dims shape{c.o.batch, c.o.sequence, c.spec.heads, checked_mul(3, h)};
  const std::vector<ValueId> parts = c.g.split(c.g.transpose(c.g.view(y, shape), 1, 2), h, 3, 3);
  return {parts[0], parts[1], parts[2]};
}

Heads selected(Context& c, ValueId y, const LayerWeights& w) {
  const Dims shape{c.o.batch, c.o.sequence, c.spec.heads, 3, c.spec.head_dim};
  const ValueId all = c.g.view(y, shape);
  Heads h{c.g.select(all, 3, 0), c.g.select(all, 3, 1), c.g.select(all, 3, 2)};
  if (!w.q_norm.empty()) {
    h.q = norm(c, h.q, w.q_norm[0]);
    h.k = norm(c, h.k, w.k_norm[0]);
  }
  h.q = c.g.transpose(h.q, 1, 2);
  h.v = c.g.transpose(h.v, 1, 2);
  h.k = c.g.transpose(h.k, 1, 2);
  return h;
}

Heads fused(Context& c, PythonFrame& frame, ValueId x, const LayerWeights& w) {
  const ValueId y = c.linear(x, w.qkv);
  switch (c.style.fused) {
    case FusedStyle::kSplit:
      return split_in_order(c, y);
    case FusedStyle::kSlices:
      return slices(c, frame(y));
    case FusedStyle::kChunks:
      return chunks(c, frame(y));
    case FusedStyle::kSelect:
      break;
  }
  return selected(c, frame(y), w);
}

// stablelm-2-12b: every head has a norm of its own.
ValueId own_norms(Context& c, ValueId x, const std::vector<Affine>& norms) {
  PythonFrame frame(c);
  frame(x);
  std::vector<ValueId> heads = c.g.split(x, 1, 1, norms.size());
  std::vector<ValueId> normal;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    frame(heads[i]);
    normal.push_back(norm(c, heads[i], norms[i]));
  }
  return c.cat(normal, 1);
}

// A variable of the frame is the norm's argument until its result replaces it.
ValueId norm_of_heads(Context& c, ValueId x, const std::vector<Affine>& norms) {
  const ValueId y = norms.size() == 1 ? norm(c, x, norms[0]) : own_norms(c, x, norms);
  c.g.hold(x);
  return y;
}

void norm_heads(Context& c, Heads& h, const LayerWeights& w) {
  h.q = norm_of_heads(c, h.q, w.q_norm);
  h.k = norm_of_heads(c, h.k, w.k_norm);
}

Heads projections(Context& c, PythonFrame& frame, ValueId x, const LayerWeights& w) {
  if (c.a.qkv != QkvLayout::kSeparate) return fused(c, frame, x, w);
  return c.style.scaled_queries ? separate_scaled(c, x, w) : separate(c, x, w);
}

}  // namespace

namespace {

// Everything before the output projection. `frame` holds what the module's frame names.
AttentionResult attended(Context& c, PythonFrame& frame, ValueId x, const LayerWeights& w,
                         const LayerFacts& f) {
  frame(x);
  Heads h = projections(c, frame, x, w);
  const bool norms = !w.q_norm.empty();
  if (norms && c.style.qk_norm == QkNormPlace::kOnHeads) norm_heads(c, h, w);
  const Context::LayerTables& tables = c.tables[f.window > 0 ? 1 : 0];
  if (f.rotary && tables.cos != kNoValue) rotate(c, frame, h, tables);
  if (norms && c.style.qk_norm == QkNormPlace::kAfterRotary) norm_heads(c, h, w);
  if (c.style.rotary == RotaryStyle::kGptj) {
    h.q = c.g.transpose(h.q, 1, 2);
    h.k = c.g.transpose(h.k, 1, 2);
  }
  for (ValueId v : {h.q, h.k, h.v}) frame(v);
  AttentionResult r =
      c.eager() ? eager_attention(c, h, tables.mask, f) : sdpa(c, h, tables.mask, f);
  frame(r.probabilities);
  const std::int64_t width = checked_mul(c.spec.heads, c.spec.head_dim);
  r.y = c.g.contiguous(c.g.reshape(r.y, {c.o.batch, c.o.sequence, width}));
  return r;
}

}  // namespace

AttentionResult attention(Context& c, ValueId x, const LayerWeights& w, const LayerFacts& f) {
  AttentionResult r;
  PythonFrame frame(c);
  if (c.style.separate_output) {
    PythonFrame inner(c);
    r = attended(c, inner, x, w, f);
  } else {
    r = attended(c, frame, x, w, f);
  }
  r.y = c.linear(r.y, w.output);
  return r;
}

}  // namespace plimsoll::network::hf
