// Rotary positions as transformers applies them to queries and keys.
#include "plimsoll/network/families/hf_parts.hpp"

namespace plimsoll::network::hf {
namespace {

ValueId slice_last(Context& c, ValueId x, std::int64_t start, std::int64_t stop) {
  return c.g.slice(x, 3, start, stop);
}

// cat(-second half, first half).
ValueId rotate_half(Context& c, ValueId x) {
  PythonFrame frame(c);
  const std::int64_t size = c.rotary_dim();
  const ValueId first = frame(slice_last(c, x, 0, size / 2));
  const ValueId second = frame(slice_last(c, x, size / 2, size));
  return c.cat({c.g.neg(second), first}, 3);
}

// Neighbours (a, b) of x [., ., ., n] become (-b, a).
ValueId rotate_neighbours(Context& c, ValueId x, const Dims& shape) {
  PythonFrame frame(c);
  const auto every_second = [&](std::int64_t first) {
    Attributes attributes;
    attributes.start = first;
    return c.g.operation(OpKind::kEverySecond, {x}, attributes);
  };
  const ValueId first = frame(every_second(0));
  const ValueId second = frame(every_second(1));
  return c.g.reshape(c.g.operation(OpKind::kStack, {c.g.neg(second), first}), shape);
}

ValueId turned(Context& c, ValueId x, ValueId cos, ValueId sin) {
  const ValueId straight = c.g.mul(x, cos);
  return c.g.add(straight, c.g.mul(rotate_half(c, x), sin));
}

ValueId turned_neighbours(Context& c, ValueId x, ValueId cos, ValueId sin, const Dims& shape) {
  const ValueId straight = c.g.mul(x, cos);
  return c.g.add(straight, c.g.mul(rotate_neighbours(c, x, shape), sin));
}

// The whole head is turned; results have the heads' dtype again.
void rotate_whole(Context& c, PythonFrame& frame, Heads& h, ValueId cos, ValueId sin) {
  const DType q_dtype = c.g.dtype_of(h.q);
  const DType k_dtype = c.g.dtype_of(h.k);
  const ValueId q = turned(c, h.q, cos, sin);
  const ValueId k = turned(c, h.k, cos, sin);
  if (c.style.rotary != RotaryStyle::kWideTables) {
    h.q = q;
    h.k = k;
    return;
  }
  frame(q);
  frame(k);
  h.q = c.g.to(q, q_dtype);
  h.k = c.g.to(k, k_dtype);
}

void rotate_wide_neighbours(Context& c, PythonFrame& frame, Heads& h, ValueId cos, ValueId sin) {
  const DType dtype = c.g.dtype_of(h.q);
  const std::int64_t size = c.spec.head_dim;
  const ValueId wide_q = frame(c.g.to(h.q, DType::kFloat32));
  const ValueId wide_k = frame(c.g.to(h.k, DType::kFloat32));
  const ValueId cos4 = frame(c.g.unsqueeze(cos, 1));
  const ValueId sin4 = frame(c.g.unsqueeze(sin, 1));
  const auto shape = [&](std::int64_t heads) { return Dims{c.o.batch, heads, c.o.sequence, size}; };
  const ValueId q = frame(turned_neighbours(c, wide_q, cos4, sin4, shape(c.spec.heads)));
  const ValueId k = frame(turned_neighbours(c, wide_k, cos4, sin4, shape(c.spec.kv_heads)));
  h.q = c.g.to(q, dtype);
  h.k = c.g.to(k, dtype);
}

// The part that is turned and the rest; the whole head has an empty rest.
struct Parts {
  ValueId turned = kNoValue;
  ValueId rest = kNoValue;
};
Parts parts_of(Context& c, PythonFrame& frame, ValueId x) {
  const std::int64_t turned = c.rotary_dim();
  const std::int64_t size = c.spec.head_dim;
  const ValueId part = turned == size ? x : frame(slice_last(c, x, 0, turned));
  return {part, frame(slice_last(c, x, turned, size))};
}

void rotate_part(Context& c, PythonFrame& frame, Heads& h, ValueId cos, ValueId sin) {
  const Parts q = parts_of(c, frame, h.q);
  const Parts k = parts_of(c, frame, h.k);
  ValueId turned_q = frame(turned(c, q.turned, cos, sin));
  if (c.style.join == JoinStyle::kOneByOne) turned_q = frame(c.cat({turned_q, q.rest}, 3));
  const ValueId turned_k = frame(turned(c, k.turned, cos, sin));
  if (c.style.join != JoinStyle::kOneByOne) turned_q = c.cat({turned_q, q.rest}, 3);
  h.q = turned_q;
  h.k = c.cat({turned_k, k.rest}, 3);
}

// gptj: heads are [B, T, N, H]; each use repeats the tables [1, T, R / 2] anew.
ValueId repeated_table(Context& c, ValueId table) {
  const std::int64_t half = c.rotary_dim() / 2;
  const Dims wide{1, c.o.sequence, 1, half, 2};
  const ValueId column = c.g.unsqueeze(c.g.unsqueeze(table, 2), 4);
  return c.g.reshape(c.g.expand(column, wide), {1, c.o.sequence, 1, 2 * half});
}

ValueId turned_gptj(Context& c, ValueId x, const Context::LayerTables& tables) {
  PythonFrame frame(c);
  const ValueId sin = frame(repeated_table(c, tables.sin));
  const ValueId cos = frame(repeated_table(c, tables.cos));
  const Dims shape{c.o.batch, c.o.sequence, c.spec.heads, c.rotary_dim()};
  return turned_neighbours(c, x, cos, sin, shape);
}

void rotate_gptj(Context& c, PythonFrame& frame, Heads& h, const Context::LayerTables& tables) {
  const Parts k = parts_of(c, frame, h.k);
  const Parts q = parts_of(c, frame, h.q);
  const ValueId turned_k = frame(turned_gptj(c, k.turned, tables));
  const ValueId turned_q = frame(turned_gptj(c, q.turned, tables));
  h.k = c.cat({turned_k, k.rest}, 3);
  h.q = c.cat({turned_q, q.rest}, 3);
}

}  // namespace

void rotate(Context& c, PythonFrame& attention, Heads& heads, const Context::LayerTables& tables) {
  if (c.style.rotary == RotaryStyle::kGptj) return rotate_gptj(c, attention, heads, tables);
  const Heads before = heads;
  {
    PythonFrame own(c);
    if (c.style.rotary == RotaryStyle::kNeighboursWide) {
      rotate_wide_neighbours(c, own, heads, tables.cos, tables.sin);
    } else {
      const ValueId cos = own(c.g.unsqueeze(tables.cos, 1));
      const ValueId sin = own(c.g.unsqueeze(tables.sin, 1));
      if (c.style.join == JoinStyle::kNone) {
        rotate_whole(c, own, heads, cos, sin);
      } else {
        PythonFrame& holder = c.style.join == JoinStyle::kInAttention ? attention : own;
        rotate_part(c, holder, heads, cos, sin);
      }
    }
  }
  c.g.hold(before.q);  // the attention's variables, until they are assigned anew
  c.g.hold(before.k);
}

}  // namespace plimsoll::network::hf
