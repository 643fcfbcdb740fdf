#include "plimsoll/network/families/decoder_attention.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace plimsoll::network {

ValueId plimsoll_norm(Builder& g, const NetworkSpec& spec, ValueId x, const Affine& w) {
  const NormKind kind = spec.architecture.norm;
  const ValueId weight = adds_one(kind) ? g.add_number(w.weight, 1) : w.weight;
  if (weight != kNoValue) x = g.cast(x, g.dtype_of(weight));
  if (is_layer_norm(kind)) return g.layer_norm(x, weight, w.bias, spec.norm_eps);
  return g.rms_norm(x, weight, spec.norm_eps);
}

ValueId plimsoll_linear(Builder& g, const BuildOptions& options, ValueId x, const Affine& w) {
  const DType operand = options.operand();
  x = g.cast(x, operand);
  const ValueId bias = g.cast(w.bias, operand);
  const ValueId y = g.linear(x, g.cast(w.weight, operand), bias);
  if (w.adapter_a == kNoValue) return y;
  const ValueId low = g.linear(x, g.cast(w.adapter_a, operand));
  const ValueId small = g.linear(low, g.cast(w.adapter_b, operand));
  return g.add(y, g.mul_number(small, options.lora->scale));
}

// --- constants

std::int64_t DecoderAttention::rotary_dim() const {
  return a_.rotary_dim > 0 ? a_.rotary_dim : spec_.head_dim;
}

bool DecoderAttention::turns(const LayerFacts& facts) const {
  return a_.positions == Positions::kRotary && facts.rotary;
}

// The kernel's own mask is causal; everything else needs one of ours.
bool DecoderAttention::needs_mask(const LayerFacts& facts) const {
  if (a_.positions == Positions::kAlibi) return true;
  // One query sees everything that its cache holds.
  return a_.causal && !decodes() && (a_.attention_softcap > 0 || window_of(facts) > 0);
}

// 0 when the window sees the whole sequence.
std::int64_t DecoderAttention::window_of(const LayerFacts& facts) const {
  return facts.window < options_.sequence ? facts.window : 0;
}

// S: keys that attention reads, the cached ones when there is a cache.
std::int64_t DecoderAttention::keys_of(const LayerFacts& facts) const {
  if (!options_.infers()) return options_.sequence;
  return facts.window > 0 ? std::min(facts.window, options_.context) : options_.context;
}

const DecoderAttention::RotaryTable* DecoderAttention::table(double theta) const {
  const auto found = std::find_if(tables_.begin(), tables_.end(),
                                  [&](const RotaryTable& t) { return t.theta == theta; });
  return found == tables_.end() ? nullptr : &*found;
}

ValueId DecoderAttention::mask(const LayerFacts& facts) const {
  if (!needs_mask(facts)) return kNoValue;
  for (const Mask& m : masks_) {
    if (m.window == window_of(facts)) return m.value;
  }
  return kNoValue;
}

void DecoderAttention::make_tables() {
  for (std::int64_t i = 0; i < spec_.layers; ++i) {
    const LayerFacts facts = spec_.layer(i);
    if (turns(facts) && table(facts.rope_theta) == nullptr) make_rotary_table(facts.rope_theta);
    if (needs_mask(facts) && mask(facts) == kNoValue) make_mask(window_of(facts));
  }
}

void DecoderAttention::make_rotary_table(double theta) {
  const std::string place = tables_.empty() ? "rope" : fmt::format("rope.{}", tables_.size());
  const Dims shape{1, options_.sequence, rotary_dim()};
  RotaryTable t{theta, kNoValue, kNoValue};
  const auto make = [&](const char* name, InputKind kind) {
    const ValueId value =
        g_.input(fmt::format("{}.{}", place, name), shape, options_.operand(), kind);
    g_.network().inputs.back().theta = theta;
    g_.network().inputs.back().start = options_.start();
    return value;
  };
  t.cos = make("cos", InputKind::kCosine);
  t.sin = make("sin", InputKind::kSine);
  tables_.push_back(t);
}

// [T, S] for all heads, or [1, N, T, S] with a bias per head.
void DecoderAttention::make_mask(std::int64_t window) {
  const bool alibi = a_.positions == Positions::kAlibi;
  const std::int64_t t = options_.sequence;
  const std::int64_t s = decodes() ? options_.context : t;
  const Dims shape = alibi ? Dims{1, spec_.heads, t, s} : Dims{t, s};
  const std::string name = masks_.empty() ? "mask" : fmt::format("mask.{}", masks_.size());
  masks_.push_back({window, g_.input(name, shape, options_.operand(), InputKind::kMask)});
  Input& input = g_.network().inputs.back();
  input.start = options_.start();
  input.window = window;
  input.causal = a_.causal;
}

// --- attention

ValueId DecoderAttention::operator()(ValueId x, const LayerWeights& w, const LayerFacts& facts) {
  Heads heads = a_.qkv == QkvLayout::kSeparate ? separate(x, w) : fused(x, w);
  if (turns(facts)) turn(heads, *table(facts.rope_theta));
  if (a_.qk_norm_after_rotary) {
    heads.q = qk_norm(heads.q, w.q_norm);
    heads.k = qk_norm(heads.k, w.k_norm);
  }
  for (ValueId* head : {&heads.q, &heads.k, &heads.v}) *head = g_.cast(*head, options_.operand());
  if (options_.infers()) use_cache(heads, facts);
  const AttentionOptions o = attention_options(facts);
  const std::int64_t keys = decodes() ? keys_of(facts) : options_.sequence;
  const ValueId y = a_.attention_softcap > 0 ? capped_attention(heads, o, keys)
                                             : g_.attention(heads.q, heads.k, heads.v, o);
  return linear(merge_heads(g_, y, spec_.heads, spec_.head_dim, options_), w.output);
}

void DecoderAttention::use_cache(Heads& heads, const LayerFacts& facts) {
  const std::int64_t keys = keys_of(facts);
  heads.k = through_cache("keys", heads.k, keys);
  heads.v = through_cache("values", heads.v, keys);
  ++cached_layers_;
}

// What attention reads in place of x.
ValueId DecoderAttention::through_cache(const char* what, ValueId x, std::int64_t keys) {
  const ValueId cache =
      g_.cache(fmt::format("cache.{}.{}", cached_layers_, what),
               {options_.batch, spec_.kv_heads, keys, spec_.head_dim}, options_.kv_dtype);
  g_.cache_rows(cache, x);
  return decodes() ? g_.cast(cache, options_.operand()) : x;
}

void DecoderAttention::turn(Heads& heads, const RotaryTable& table) {
  const ValueId cos = g_.unsqueeze(table.cos, 1);
  const ValueId sin = g_.unsqueeze(table.sin, 1);
  heads.q = rotated(heads.q, cos, sin);
  heads.k = rotated(heads.k, cos, sin);
}

DecoderAttention::Heads DecoderAttention::separate(ValueId x, const LayerWeights& w) {
  Heads heads;
  heads.q = projected(x, w.q, w.q_norm, spec_.heads);
  heads.k = projected(x, w.k, w.k_norm, spec_.kv_heads);
  heads.v = projected(x, w.v, {}, spec_.kv_heads);
  return heads;
}

ValueId DecoderAttention::clipped(ValueId x) {
  return a_.qkv_clip > 0 ? g_.clamp(x, a_.qkv_clip) : x;
}

ValueId DecoderAttention::projected(ValueId x, const Affine& w, const std::vector<Affine>& norms,
                                    std::int64_t heads) {
  ValueId y = clipped(linear(x, w));
  if (a_.qk_norm == QkNorm::kWhole && !norms.empty()) y = norm(y, norms[0]);
  return placed(g_.view(y, head_shape(heads)), norms);
}

Dims DecoderAttention::head_shape(std::int64_t heads) const {
  return {options_.batch, options_.sequence, heads, spec_.head_dim};
}

// [B, T, heads, H] -> [B, heads, T, H], normalised per head where that comes first.
ValueId DecoderAttention::placed(ValueId x, const std::vector<Affine>& norms) {
  if (!a_.qk_norm_after_rotary) x = qk_norm(x, norms);
  return g_.transpose(x, 1, 2);
}

// x [..., H] of all heads. Norms of the whole projection happened before.
ValueId DecoderAttention::qk_norm(ValueId x, const std::vector<Affine>& norms) {
  if (norms.empty() || a_.qk_norm == QkNorm::kWhole) return x;
  if (a_.qk_norm == QkNorm::kPerHead) return norm(x, norms[0]);
  return per_head_norm(x, norms);
}

// The heads' weights, put together as [heads, H], multiply what one norm without weights gives.
ValueId DecoderAttention::per_head_norm(ValueId x, const std::vector<Affine>& norms) {
  const auto heads = static_cast<std::int64_t>(norms.size());
  const ValueId plain = g_.layer_norm(x, kNoValue, kNoValue, spec_.norm_eps);
  const ValueId y = g_.mul(plain, g_.view(joined_vectors(norms, false), {heads, spec_.head_dim}));
  if (norms[0].bias == kNoValue) return y;
  return g_.add(y, g_.view(joined_vectors(norms, true), {heads, spec_.head_dim}));
}

// cat takes a few tensors at a time.
ValueId DecoderAttention::joined_vectors(const std::vector<Affine>& norms, bool bias) {
  std::vector<ValueId> parts;
  for (const Affine& n : norms) parts.push_back(bias ? n.bias : n.weight);
  constexpr std::size_t kAtOnce = 4;
  while (parts.size() > 1) {
    std::vector<ValueId> longer;
    for (std::size_t i = 0; i < parts.size(); i += kAtOnce) {
      const auto first = parts.begin() + static_cast<std::ptrdiff_t>(i);
      const auto last =
          parts.begin() + static_cast<std::ptrdiff_t>(std::min(i + kAtOnce, parts.size()));
      longer.push_back(last - first == 1 ? *first : g_.cat({first, last}, 0));
    }
    parts = std::move(longer);
  }
  return parts[0];
}

DecoderAttention::Heads DecoderAttention::fused(ValueId x, const LayerWeights& w) {
  const ValueId y = clipped(linear(x, w.qkv));
  if (a_.qkv != QkvLayout::kInOrder) {
    const Heads parts = cut_by_group(y);
    return {placed(parts.q, w.q_norm), placed(parts.k, w.k_norm), placed(parts.v, {})};
  }
  const std::vector<ValueId> parts = cut_in_order(y);
  return {placed(g_.view(parts[0], head_shape(spec_.heads)), w.q_norm),
          placed(g_.view(parts[1], head_shape(spec_.kv_heads)), w.k_norm),
          placed(g_.view(parts[2], head_shape(spec_.kv_heads)), {})};
}

std::vector<ValueId> DecoderAttention::cut_in_order(ValueId y) {
  const std::int64_t queries = checked_mul(spec_.heads, spec_.head_dim);
  const std::int64_t keys = checked_mul(spec_.kv_heads, spec_.head_dim);
  if (queries == keys) return g_.split(y, queries, 2, 3);
  return {g_.slice(y, 2, 0, queries), g_.slice(y, 2, queries, queries + keys),
          g_.slice(y, 2, queries + keys, queries + 2 * keys)};
}

// Groups of query heads with the key and the value they share.
DecoderAttention::Heads DecoderAttention::cut_by_group(ValueId y) {
  const std::int64_t h = spec_.head_dim;
  const std::int64_t group = spec_.heads / spec_.kv_heads;
  const ValueId rows =
      g_.view(y, {options_.batch, options_.sequence, spec_.kv_heads, checked_mul(group + 2, h)});
  if (group == 1) {
    const std::vector<ValueId> parts = g_.split(rows, h, 3, 3);
    return {parts[0], parts[1], parts[2]};
  }
  const ValueId q = g_.reshape(g_.slice(rows, 3, 0, group * h), head_shape(spec_.heads));
  const ValueId k = g_.slice(rows, 3, group * h, (group + 1) * h);
  return {q, k, g_.slice(rows, 3, (group + 1) * h, (group + 2) * h)};
}

// Pairs (i, i + R / 2) of the first R elements are turned; where a checkpoint pairs neighbours, its
// rows are to be permuted once when it is read.
ValueId DecoderAttention::rotated(ValueId x, ValueId cos, ValueId sin) {
  const std::int64_t turned = rotary_dim();
  if (turned == spec_.head_dim) return rotated_part(x, turned, cos, sin);
  const ValueId part = g_.slice(x, 3, 0, turned);
  const ValueId rest = g_.slice(x, 3, turned, spec_.head_dim);
  return g_.cat({rotated_part(part, turned, cos, sin), rest}, 3);
}

ValueId DecoderAttention::rotated_part(ValueId x, std::int64_t size, ValueId cos, ValueId sin) {
  const ValueId straight = g_.mul(x, cos);
  const ValueId first = g_.slice(x, 3, 0, size / 2);
  const ValueId second = g_.slice(x, 3, size / 2, size);
  return g_.add(straight, g_.mul(g_.cat({g_.neg(second), first}, 3), sin));
}

AttentionOptions DecoderAttention::attention_options(const LayerFacts& facts) const {
  AttentionOptions o;
  o.kernel = options_.kernel;
  o.dropout = options_.dropout;
  o.grouped = spec_.kv_heads != spec_.heads;
  o.causal = a_.causal && !decodes();
  o.window = o.causal ? window_of(facts) : 0;
  o.scale = a_.attention_scale;
  o.mask = mask(facts);
  return o;
}

// No kernel caps scores: products, tanh and a softmax.
ValueId DecoderAttention::capped_attention(const Heads& heads, const AttentionOptions& o,
                                           std::int64_t keys) {
  const double scale = o.scale > 0 ? o.scale : 1 / std::sqrt(static_cast<double>(spec_.head_dim));
  const double cap = a_.attention_softcap;
  const ValueId q = g_.mul_number(heads.q, scale / cap);
  const ValueId columns = g_.transpose(all_heads(heads.k, keys), 2, 3);
  const ValueId small = g_.activation(OpKind::kTanh, g_.matmul(q, columns, o));
  ValueId scores = g_.mul_number(small, cap);
  if (o.mask != kNoValue) scores = g_.add(scores, o.mask);
  const ValueId weights = g_.dropout(g_.activation(OpKind::kSoftmax, scores), options_.dropout);
  return g_.matmul(weights, all_heads(heads.v, keys), o);
}

// [B, K, S, H] -> [B, N, S, H].
ValueId DecoderAttention::all_heads(ValueId x, std::int64_t keys) {
  const std::int64_t group = spec_.heads / spec_.kv_heads;
  if (group == 1) return x;
  const std::int64_t b = options_.batch;
  const std::int64_t h = spec_.head_dim;
  const ValueId wide = g_.expand(g_.unsqueeze(x, 2), {b, spec_.kv_heads, group, keys, h});
  return g_.reshape(wide, {b, spec_.heads, keys, h});
}

}  // namespace plimsoll::network
