// Activations and other operations element by element.
#include <ATen/TensorIterator.h>

#include "plimsoll/engine/dry/meta_kernels.hpp"

namespace plimsoll::engine::dry {
namespace {

using at::Scalar;
using at::Tensor;

// A new tensor, or `out`, with the strides that libtorch gives the result of these operands.
Tensor elementwise(const Tensor& a, const Tensor& b) {
  Tensor out;
  return at::TensorIterator::borrowing_binary_op(out, a, b).output();
}

Tensor like(const Tensor& x) {
  Tensor out;
  return at::TensorIterator::unary_op(out, x).output();
}

Tensor hardtanh(const Tensor& x, const Scalar&, const Scalar&) { return like(x); }

Tensor hardtanh_backward(const Tensor& gradient, const Tensor& x, const Scalar&, const Scalar&) {
  return elementwise(gradient, x);
}

std::tuple<Tensor, Tensor> log_sigmoid(const Tensor& x) {
  return {at::empty_like(x), at::empty_like(x, at::MemoryFormat::Contiguous)};
}

Tensor log_sigmoid_backward(const Tensor& gradient, const Tensor& x, const Tensor&) {
  return elementwise(gradient, x);
}

Tensor glu_backward(const Tensor&, const Tensor& x, std::int64_t) { return at::empty_like(x); }

Tensor& unary_out(const Tensor& x, Tensor& out) {
  at::TensorIterator::unary_op(out, x);
  return out;
}

Tensor& logical_out(const Tensor& a, const Tensor& b, Tensor& out) {
  at::TensorIterator::comparison_op(out, a, b);
  return out;
}

Tensor& logical_not_out(const Tensor& x, Tensor& out) {
  at::TensorIteratorConfig().check_all_same_dtype(false).add_output(out).add_const_input(x).build();
  return out;
}

// Operands of another dtype are cast first, and the casts live until the result exists.
Tensor& where_out(const Tensor& condition, const Tensor& self, const Tensor& other, Tensor& out) {
  const at::ScalarType dtype = at::result_type(self, other);
  const Tensor self_cast = self.to(dtype), other_cast = other.to(dtype);
  at::TensorIteratorConfig()
      .check_all_same_dtype(false)
      .add_output(out)
      .add_const_input(condition)
      .add_const_input(self_cast)
      .add_const_input(other_cast)
      .build();
  return out;
}

Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  Tensor out = at::empty({0}, self.options().dtype(at::result_type(self, other)).device(at::kMeta));
  return where_out(condition, self, other, out);
}

Tensor isnan(const Tensor& x) { return at::empty_like(x, x.options().dtype(at::kBool)); }

Tensor prelu(const Tensor& x, const Tensor& weight) { return elementwise(x, weight); }

std::tuple<Tensor, Tensor> prelu_backward(const Tensor& gradient, const Tensor& x, const Tensor&) {
  Tensor dx = elementwise(gradient, x);
  return {std::move(dx), elementwise(gradient, x)};
}

// There are no values: equal is what shares memory. nn::MultiheadAttention asks, to find out
// whether it attends to itself.
bool equal(const Tensor& a, const Tensor& b) {
  return a.is_alias_of(b) && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset();
}

Tensor flip(const Tensor& x, at::IntArrayRef) { return at::empty_like(x); }

Tensor roll(const Tensor& x, c10::SymIntArrayRef, at::IntArrayRef) { return at::empty_like(x); }

// CUDA's dropout. The CPU's is composed of other operations.
std::tuple<Tensor, Tensor> native_dropout(const Tensor& x, double, std::optional<bool>) {
  Tensor out = at::empty_like(x);
  return {std::move(out), at::empty_like(x, x.options().dtype(at::kBool))};
}

Tensor native_dropout_backward(const Tensor& gradient, const Tensor&, double) {
  return at::empty_like(gradient);
}

}  // namespace

void register_elementwise_kernels(torch::Library& meta) {
  add_if_missing(meta, "relu", TORCH_FN(like));
  add_if_missing(meta, "hardswish", TORCH_FN(like));
  add_if_missing(meta, "hardswish_backward", TORCH_FN(elementwise));
  add_if_missing(meta, "mish_backward", TORCH_FN(elementwise));
  add_if_missing(meta, "hardtanh", TORCH_FN(hardtanh));
  add_if_missing(meta, "hardtanh_backward", TORCH_FN(hardtanh_backward));
  add_if_missing(meta, "log_sigmoid_forward", TORCH_FN(log_sigmoid));
  add_if_missing(meta, "log_sigmoid_backward", TORCH_FN(log_sigmoid_backward));
  add_if_missing(meta, "glu_backward", TORCH_FN(glu_backward));
  add_if_missing(meta, "abs.out", TORCH_FN(unary_out));
  add_if_missing(meta, "logical_and.out", TORCH_FN(logical_out));
  add_if_missing(meta, "logical_or.out", TORCH_FN(logical_out));
  add_if_missing(meta, "logical_xor.out", TORCH_FN(logical_out));
  add_if_missing(meta, "logical_not.out", TORCH_FN(logical_not_out));
  add_if_missing(meta, "where.self", TORCH_FN(where));
  add_if_missing(meta, "where.self_out", TORCH_FN(where_out));
  add_if_missing(meta, "_prelu_kernel", TORCH_FN(prelu));
  add_if_missing(meta, "_prelu_kernel_backward", TORCH_FN(prelu_backward));
  add_if_missing(meta, "equal", TORCH_FN(equal));
  add_if_missing(meta, "native_dropout", TORCH_FN(native_dropout));
  add_if_missing(meta, "native_dropout_backward", TORCH_FN(native_dropout_backward));
  add_if_missing(meta, "isnan", TORCH_FN(isnan));
  add_if_missing(meta, "flip", TORCH_FN(flip));
  add_if_missing(meta, "roll", TORCH_FN(roll));
}

}  // namespace plimsoll::engine::dry
