#include "plimsoll/network/rules/kernels.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace plimsoll::network::rules {
namespace {

// Strides of `t` as an operand of an output of `shape`: 0 where it is broadcast.
Dims operand_strides(const Tensor& t, const Dims& shape) {
  Dims strides;
  const std::size_t missing = shape.size() - t.rank();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i < missing) {
      strides.push_back(0);
    } else {
      const bool repeated = t.size(i - missing) == 1 && shape[i] != 1;
      strides.push_back(repeated ? 0 : t.strides()[i - missing]);
    }
  }
  return strides;
}

// Should dimension `a` lie outside of `b`? 1 yes, -1 no, 0 undecided.
int order_of(std::size_t a, std::size_t b, const Dims& shape, const Few<Dims, 4>& operands) {
  for (const Dims& strides : operands) {
    if (strides[a] == 0 || strides[b] == 0) continue;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    if (shape[a] > shape[b]) return 1;
  }
  return 0;
}

Dims packed_strides(const Dims& shape, const Few<Dims, 4>& operands) {
  const std::size_t n = shape.size();
  std::array<std::size_t, Dims::kCapacity> inner_first{};
  for (std::size_t i = 0; i < n; ++i) inner_first[i] = n - 1 - i;
  for (std::size_t i = 1; i < n; ++i) {  // insertion sort that skips undecided pairs
    std::size_t high = i;
    for (std::size_t low = i; low-- > 0;) {
      const int order = order_of(inner_first[low], inner_first[high], shape, operands);
      if (order > 0) {
        std::swap(inner_first[low], inner_first[high]);
        high = low;
      } else if (order < 0) {
        break;
      }
    }
  }
  Dims strides = shape;
  std::int64_t step = 1;
  for (std::size_t i = 0; i < n; ++i) {
    strides[inner_first[i]] = step;
    step *= shape[inner_first[i]];
  }
  return strides;
}

}  // namespace

Dims output_strides(const Dims& shape, std::initializer_list<const Tensor*> operands) {
  bool same_shape = true;
  bool contiguous = true;
  bool same_strides = true;
  const Tensor& first = **operands.begin();
  for (const Tensor* t : operands) {
    same_shape = same_shape && t->shape() == shape;
    contiguous = contiguous && t->contiguous();
    same_strides = same_strides && t->strides() == first.strides();
  }
  if (same_shape && contiguous) return contiguous_strides(shape);
  if (same_shape && same_strides && first.dense()) return first.strides();
  Few<Dims, 4> strides;
  for (const Tensor* t : operands) strides.push_back(operand_strides(*t, shape));
  return packed_strides(shape, strides);
}

DType promote(std::initializer_list<const Tensor*> operands) {
  DType scalars = DType::kBool;
  DType tensors = DType::kBool;
  bool any_dims = false;
  for (const Tensor* t : operands) {
    DType& result = t->rank() > 0 ? tensors : scalars;
    any_dims = any_dims || t->rank() > 0;
    result = std::max(result, t->dtype());
  }
  return any_dims ? tensors : scalars;
}

Tensor pointwise(Autograd& a, std::initializer_list<const Tensor*> operands) {
  const DType common = promote(operands);
  Dims shape = (*operands.begin())->shape();
  for (const Tensor* t : operands) {
    if (t->shape() != shape) shape = broadcast(shape, t->shape());
  }
  Few<Tensor, 4> casts;
  for (const Tensor* t : operands) {
    if (t->dtype() == common || !a.facts.cast_operands) continue;
    casts.push_back(a.empty_strided(t->shape(), output_strides(t->shape(), {t}), common,
                                    timeline::Tag::kWorkspace));
  }
  return a.empty_strided(shape, output_strides(shape, operands), common, a.tag);
}

NumberBlocks number_blocks(Autograd& a, DType dtype, DType number) {
  if (!a.facts.number_blocks) return {};
  NumberBlocks blocks;
  blocks.number = a.scratch({}, number);
  if (dtype != number) blocks.cast = a.scratch({}, dtype);
  return blocks;
}

Tensor like_with_number(Autograd& a, const Tensor& t) {
  // The number is an operand without dimensions, so the layout is always found by sorting strides,
  // even where t counts as contiguous (a dimension of size 1 with a foreign stride).
  Few<Dims, 4> strides;
  strides.push_back(t.strides());
  return a.empty_strided(t.shape(), packed_strides(t.shape(), strides), t.dtype(), a.tag);
}

Tensor with_number(Autograd& a, const Tensor& t, DType number) {
  const NumberBlocks blocks = number_blocks(a, t.dtype(), number);
  return like_with_number(a, t);
}

Tensor compared_with_number(Autograd& a, const Tensor& t) {
  const NumberBlocks blocks = number_blocks(a, t.dtype());
  Few<Dims, 4> strides;
  strides.push_back(t.strides());
  return a.empty_strided(t.shape(), packed_strides(t.shape(), strides), DType::kBool, a.tag);
}

Tensor chosen(Autograd& a, const Tensor& condition, const Tensor& t) {
  Few<Dims, 4> strides;
  strides.push_back(condition.strides());
  strides.push_back(t.strides());
  return a.empty_strided(t.shape(), packed_strides(t.shape(), strides), t.dtype(), a.tag);
}

void in_place_with_number(Autograd& a, const Tensor& t, DType number) {
  number_blocks(a, t.dtype(), number);
}

Tensor empty_like(Autograd& a, const Tensor& t) {
  return a.empty_strided(t.shape(), output_strides(t.shape(), {&t}), t.dtype(), a.tag);
}

Tensor cast(Autograd& a, const Tensor& t, DType dtype) {
  const Dims strides = t.dense() ? t.strides() : output_strides(t.shape(), {&t});
  return a.empty_strided(t.shape(), strides, dtype, a.tag);
}

Tensor sum_last(Autograd& a, const Tensor& t) {
  Dims shape = t.shape();
  shape[shape.size() - 1] = 1;
  return a.empty(shape, t.dtype());
}

namespace {

// How many separate stretches a reduction walks: dimensions sorted by stride, neighbours of the same
// kind merged when the outer one continues the inner one.
int reduced_runs(const Tensor& t, const std::array<bool, Dims::kCapacity>& reduced) {
  std::array<std::size_t, Dims::kCapacity> order{};
  std::size_t n = 0;
  for (std::size_t i = t.rank(); i-- > 0;) {
    if (t.size(i) == 1) continue;
    std::size_t at = n++;
    for (; at > 0 && t.strides()[order[at - 1]] > t.strides()[i]; --at) order[at] = order[at - 1];
    order[at] = i;
  }
  int runs = 0;
  bool open = false;          // the dimension before belongs to a reduced run
  std::int64_t expected = 0;  // the stride at which that run goes on
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t i = order[k];
    if (reduced[i] && !(open && t.strides()[i] == expected)) ++runs;
    open = reduced[i];
    expected = t.strides()[i] * t.size(i);
  }
  return runs;
}

// A 16-bit sum that takes more than one pass is kept in fp32 between them.
void wide_sum(Autograd& a, const Tensor& t, const Dims& result,
              const std::array<bool, Dims::kCapacity>& reduced) {
  const bool narrow = size_of(t.dtype()) == 2 && a.facts.cast_operands;
  if (!narrow || reduced_runs(t, reduced) < 2) return;
  const Tensor sum = a.scratch(result, DType::kFloat32);
  a.scratch(t.shape(), DType::kFloat32);
}

}  // namespace

Tensor sum_to(Autograd& a, const Tensor& t, const Dims& shape) {
  const std::size_t leading = t.rank() - shape.size();
  Dims reduced = t.shape();
  bool sums = leading > 0;
  std::array<bool, Dims::kCapacity> over{};
  for (std::size_t i = 0; i < t.rank(); ++i) {
    over[i] = i < leading || (shape[i - leading] == 1 && t.size(i) != 1);
    if (over[i]) reduced[i] = 1;
    sums = sums || over[i];
  }
  Tensor result = sums ? a.empty(reduced, t.dtype()) : t;
  if (sums) wide_sum(a, t, reduced, over);
  return leading > 0 ? a.tracked_view(result, shape, contiguous_strides(shape)) : result;
}

Tensor reshape_gradient(Autograd& a, const Tensor& g, const Dims& shape) {
  const ViewStrides view = view_strides(g.shape(), g.strides(), shape);
  return view.possible ? a.tracked_view(g, shape, view.strides) : a.empty(shape, g.dtype());
}

Dims swapped(const Dims& dims, std::size_t d0, std::size_t d1) {
  Dims result = dims;
  std::swap(result[d0], result[d1]);
  return result;
}

Tensor transposed(Autograd& a, const Tensor& t, std::size_t d0, std::size_t d1) {
  return a.tracked_view(t, swapped(t.shape(), d0, d1), swapped(t.strides(), d0, d1));
}

Tensor expanded(Autograd& a, const Tensor& t, const Dims& shape) {
  Dims strides = t.strides();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (t.size(i) == 1 && shape[i] != 1) strides[i] = 0;
  }
  return a.tracked_view(t, shape, strides);
}

Tensor contiguous_copy(Autograd& a, const Tensor& t) {
  return t.contiguous() ? Tensor() : a.scratch(t.shape(), t.dtype());
}

void hand_on(Autograd&, Node&, Gradients& in, Gradients& out) { out[0] = in[0]; }

void add_backward(Autograd&, Node& node, Gradients& in, Gradients& out) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (node.wants(i)) out[i] = in[0];
  }
}

}  // namespace plimsoll::network::rules
