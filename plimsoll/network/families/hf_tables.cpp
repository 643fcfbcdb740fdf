// What transformers' models compute before their layers: position ids, rotary tables, masks.
#include "plimsoll/network/families/hf_model.hpp"

namespace plimsoll::network::hf {
namespace {

bool sees_window(const LayerFacts& f) { return f.window > 0; }

void make_rotary_table(Context& c, Context::LayerTables& t) {
  const std::int64_t tokens = c.o.sequence;
  if (c.style.rotary == RotaryStyle::kGptj) {
    const ValueId both = c.g.fresh({1, tokens, c.rotary_dim()}, c.o.dtype);
    const std::vector<ValueId> halves = c.g.split(both, c.rotary_dim() / 2, 2, 2);
    t.sin = halves[0];
    t.cos = halves[1];
    c.g.keep(t.sin);
    c.g.keep(t.cos);
    c.g.release(both);
    return;
  }
  const bool wide = c.style.rotary == RotaryStyle::kWideTables;
  const DType dtype = wide ? DType::kFloat32 : c.o.dtype;
  t.cos = c.g.fresh({1, tokens, c.rotary_dim()}, dtype);
  t.sin = c.g.fresh({1, tokens, c.rotary_dim()}, dtype);
}

// Eager attention adds a mask of its own dtype; sdpa takes a bool one where its causal flag does not
// do, that is when the window is shorter than the sequence or as long.
void make_mask(Context& c, Context::LayerTables& t, const LayerFacts& f) {
  const std::int64_t tokens = c.o.sequence;
  const Dims all{c.o.batch, 1, tokens, tokens};
  const bool falcon = c.style.layer == LayerStyle::kFalcon;
  if (!c.a.causal) return;
  if (falcon && c.a.positions == Positions::kAlibi) {
    t.mask = c.g.fresh({c.o.batch, c.spec.heads, tokens, tokens}, c.o.dtype);
  } else if (c.eager()) {
    t.mask = c.g.fresh(all, c.o.dtype);
  } else if (falcon || (sees_window(f) && tokens >= f.window)) {
    const ValueId one = c.g.fresh({1, 1, tokens, tokens}, DType::kBool);
    t.mask = c.g.expand(one, all);
    c.g.keep(t.mask);
    c.g.release(one);
  }
}

}  // namespace

void make_tables(Context& c) {
  if (c.style.position_ids) {
    const std::int64_t rows = c.style.ids_per_row ? c.o.batch : 1;
    c.position_ids = c.g.fresh({rows, c.o.sequence}, DType::kInt64);
  }
  if (c.a.positions == Positions::kAlibi) {
    const std::int64_t rows = checked_mul(c.o.batch, c.spec.heads);
    c.alibi = c.g.fresh({rows, 1, c.o.sequence}, c.o.dtype);
  }
  bool made[2] = {false, false};
  for (std::int64_t i = 0; i < c.spec.layers; ++i) {
    const LayerFacts f = c.spec.layer(i);
    const std::size_t kind = sees_window(f) ? 1 : 0;
    if (std::exchange(made[kind], true)) continue;
    Context::LayerTables& t = c.tables[kind];
    const Context::LayerTables& other = c.tables[1 - kind];
    if (c.a.positions == Positions::kRotary || c.style.layer == LayerStyle::kFalcon) {
      if (other.cos != kNoValue && !c.style.tables_by_kind) {
        t.cos = other.cos;
        t.sin = other.sin;
      } else {
        make_rotary_table(c, t);
      }
    }
    make_mask(c, t, f);
  }
}

void release_tables(Context& c) {
  if (c.position_ids != kNoValue) c.g.release(c.position_ids);
  if (c.alibi != kNoValue) c.g.release(c.alibi);
  const bool shared = c.tables[0].cos == c.tables[1].cos;
  for (std::size_t kind = 0; kind < 2; ++kind) {
    const Context::LayerTables& t = c.tables[kind];
    if (t.cos != kNoValue && !(kind == 1 && shared)) {
      c.g.release(t.cos);
      c.g.release(t.sin);
    }
    if (t.mask != kNoValue) c.g.release(t.mask);
  }
}

}  // namespace plimsoll::network::hf
