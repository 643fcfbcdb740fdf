#include "plimsoll/network/families/hf_context.hpp"

#include <algorithm>

namespace plimsoll::network::hf {

ValueId Context::narrow_parameter(ValueId p) {
  if (!o.autocast || p == kNoValue) return p;
  auto [found, fresh] = casts_.emplace(p, kNoValue);
  if (fresh) {
    found->second = g.to(p, narrow_dtype());
    g.keep(found->second);
  }
  return found->second;
}

ValueId Context::linear(ValueId x, const Affine& weights) {
  return style.column_weights ? column_linear(x, weights) : plain_linear(x, weights);
}

ValueId Context::plain_linear(ValueId x, const Affine& weights) {
  const ValueId bias = narrow_parameter(weights.bias);
  const ValueId weight = narrow_parameter(weights.weight);
  return adapted(x, g.linear(narrow(x), weight, bias), weights);
}

ValueId Context::adapted(ValueId x, ValueId y, const Affine& weights) {
  if (weights.adapter_a == kNoValue) return y;
  const ValueId low = plain_linear(x, {weights.adapter_a});
  const ValueId high = plain_linear(low, {weights.adapter_b});
  return g.add(y, g.scale(high, o.lora->scale));
}

// transformers' Conv1D: addmm(bias, x, weight) with rows of x merged.
ValueId Context::column_linear(ValueId x, const Affine& weights) {
  const std::int64_t rows = checked_mul(o.batch, o.sequence);
  const ValueId flat = g.view(x, {rows, -1});
  const ValueId weight = narrow_parameter(weights.weight);
  const ValueId narrow_rows = narrow(flat);
  const ValueId bias = narrow_parameter(weights.bias);
  const ValueId y = g.operation(OpKind::kColumnLinear, {narrow_rows, weight, bias});
  return adapted(x, g.view(y, {o.batch, o.sequence, -1}), weights);
}

ValueId Context::matmul(ValueId x, ValueId y, const AttentionOptions& options) {
  const ValueId right = narrow(y);
  return g.matmul(narrow(x), right, options);
}

ValueId Context::cat(const std::vector<ValueId>& parts, std::size_t dim) {
  DType widest = DType::kBool;
  for (ValueId p : parts) widest = std::max(widest, g.dtype_of(p));
  std::vector<ValueId> alike;
  for (ValueId p : parts) alike.push_back(g.to(p, widest));
  return g.cat(alike, dim);
}

ValueId Context::local(const Dims& shape, DType dtype) {
  Attributes attributes;
  attributes.shape = shape;
  attributes.dtype = dtype;
  return g.operation(OpKind::kFresh, {}, attributes);
}

void Context::hold_arguments(const LayerFacts& facts) {
  const LayerTables& t = tables[facts.window > 0 ? 1 : 0];
  for (ValueId v : {t.cos, t.sin, t.mask, alibi, style.position_ids ? position_ids : kNoValue}) {
    if (v != kNoValue) g.hold(v);
  }
}

}  // namespace plimsoll::network::hf
