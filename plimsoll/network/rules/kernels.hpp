// What library kernels allocate when called directly: elementwise outputs, casts, sums, numbers.
// No autograd here; the rules of operations and the formulas of their gradients are made of these.
#pragma once

#include <initializer_list>

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

// Strides of a new elementwise output. All operands contiguous: contiguous. All equal and dense: the
// same. Else the dimensions are sorted by the operands' strides, the first operand with an opinion
// wins (stride 0 is no opinion), and packed densely.
Dims output_strides(const Dims& shape, std::initializer_list<const Tensor*> operands);

// Type promotion: tensors with dimensions decide before 0-dimensional ones.
DType promote(std::initializer_list<const Tensor*> operands);

// What sums of values of this dtype are kept in.
inline DType accumulation_dtype(DType dtype) {
  return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

// A new tensor from elementwise arithmetic. Operands of another dtype are first cast into
// temporaries that die with the call.
Tensor pointwise(Autograd& a, std::initializer_list<const Tensor*> operands);

// The 8-byte number and its cast that live during an operation with a number. A number is an int64 or
// an fp64; one of the tensor's own dtype needs no cast.
struct NumberBlocks {
  Tensor number;
  Tensor cast;
};
NumberBlocks number_blocks(Autograd& a, DType dtype, DType number = DType::kFloat64);

// The result of an operation of t and a number, without the number's blocks.
Tensor like_with_number(Autograd& a, const Tensor& t);

// t * c: a new tensor.
Tensor with_number(Autograd& a, const Tensor& t, DType number = DType::kFloat64);
// t.mul_(c): only the number's blocks.
void in_place_with_number(Autograd& a, const Tensor& t, DType number = DType::kFloat64);

// t >= c: a bool tensor.
Tensor compared_with_number(Autograd& a, const Tensor& t);
// where(condition, t, a number of t's dtype).
Tensor chosen(Autograd& a, const Tensor& condition, const Tensor& t);

Tensor empty_like(Autograd& a, const Tensor& t);
Tensor cast(Autograd& a, const Tensor& t, DType dtype);

// Sum over the last dimension, kept as size 1.
Tensor sum_last(Autograd& a, const Tensor& t);

// Reduces `t` to `shape` (broadcasting undone): sums, then drops leading dimensions by a tracked view.
Tensor sum_to(Autograd& a, const Tensor& t, const Dims& shape);

// Inside a backward formula: a tracked view when strides allow it, else a contiguous copy.
Tensor reshape_gradient(Autograd& a, const Tensor& g, const Dims& shape);

// Kernels that read rows copy an operand that is not contiguous: scratch for as long as the caller
// keeps it, nothing for a contiguous one.
Tensor contiguous_copy(Autograd& a, const Tensor& t);

Tensor transposed(Autograd& a, const Tensor& t, std::size_t d0, std::size_t d1);
Tensor expanded(Autograd& a, const Tensor& t, const Dims& shape);

Dims swapped(const Dims& dims, std::size_t d0, std::size_t d1);

// Formulas of several operations: the gradient itself, for the one input or for both of them.
void hand_on(Autograd& a, Node& node, Gradients& in, Gradients& out);
void add_backward(Autograd& a, Node& node, Gradients& in, Gradients& out);

}  // namespace plimsoll::network::rules
