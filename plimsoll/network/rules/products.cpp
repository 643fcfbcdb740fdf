#include "plimsoll/network/rules/products.hpp"

#include "plimsoll/network/rules/kernels.hpp"
#include "plimsoll/network/rules/views.hpp"

namespace plimsoll::network::rules {
namespace {

constexpr std::size_t kLeft = 0;
constexpr std::size_t kRight = 1;

Tensor product(Autograd& a, const Tensor& x, const Tensor& y) {
  const std::int64_t rows = x.size(0);
  const std::int64_t columns = y.size(1);
  a.flops.matmul =
      checked_add(a.flops.matmul, checked_mul(checked_mul(2 * rows, columns), x.size(1)));
  return a.empty({rows, columns}, promote({&x, &y}));
}

// Is a matrix of these strides stored by columns?
bool by_columns(const Dims& strides, const Dims& shape) {
  return strides[0] == 1 && strides[1] == shape[0];
}

// g @ y^T, computed as (y @ g^T)^T when x was stored by columns.
Tensor left_gradient(Autograd& a, const Node& node, const Tensor& g, const Tensor& y) {
  const bool columns = node.number & 1;
  if (columns) return transposed(a, product(a, y, transposed(a, g, 0, 1)), 0, 1);
  return product(a, g, transposed(a, y, 0, 1));
}

// x^T @ g, computed as (g^T @ x)^T when y was stored by columns.
Tensor right_gradient(Autograd& a, const Node& node, const Tensor& g, const Tensor& x) {
  const bool columns = node.number & 2;
  if (columns) return transposed(a, product(a, transposed(a, g, 0, 1), x), 0, 1);
  return product(a, transposed(a, x, 0, 1), g);
}

void remember_layouts(Node& node, const Tensor& x, const Tensor& y) {
  node.number = (by_columns(x.strides(), x.shape()) ? 1 : 0) |
                (by_columns(y.strides(), y.shape()) ? 2 : 0);
}

// Gradients of one node are computed in alphabetical order of the argument names: mat2, self.
void mm_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor y = a.unpack(node, kRight);
  const Tensor x = a.unpack(node, kLeft);
  if (node.wants(1)) out[1] = right_gradient(a, node, in[0], x);
  if (node.wants(0)) out[0] = left_gradient(a, node, in[0], y);
}

// mat1, mat2, self: the bias's gradient is the incoming one, summed by validation.
void addmm_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor x = a.unpack(node, kLeft);
  const Tensor y = a.unpack(node, kRight);
  if (node.wants(1)) out[1] = left_gradient(a, node, in[0], y);
  if (node.wants(2)) out[2] = right_gradient(a, node, in[0], x);
  if (node.wants(0)) out[0] = in[0];
}

void count_bmm(Autograd& a, const Dims& x, std::int64_t columns) {
  const std::int64_t pairs = checked_mul(checked_mul(x[0], x[1]), x[2]);
  const std::int64_t flops = checked_mul(2 * columns, pairs);
  a.flops.attention_full = checked_add(a.flops.attention_full, flops);
  a.flops.attention_exact = checked_add(a.flops.attention_exact, flops);
}

void bmm_backward(Autograd& a, Node& node, Gradients&, Gradients& out) {
  const Tensor y = a.unpack(node, kRight);
  const Tensor x = a.unpack(node, kLeft);
  if (node.wants(1)) {
    out[1] = a.empty(y.shape(), y.dtype());
    count_bmm(a, {x.size(0), x.size(2), x.size(1)}, y.size(2));
  }
  if (node.wants(0)) {
    out[0] = a.empty(x.shape(), x.dtype());
    count_bmm(a, {x.size(0), x.size(1), y.size(2)}, x.size(2));
  }
}

}  // namespace

Tensor mm(Autograd& a, const Tensor& x, const Tensor& y) {
  const Ref<Node> node = a.record("Mm", mm_backward, {&x, &y});
  if (node) {
    if (node->wants(0)) a.save_input(*node, kRight, y);
    if (node->wants(1)) a.save_input(*node, kLeft, x);
    remember_layouts(*node, x, y);
  }
  Tensor out = product(a, x, y);
  return a.attach(node, out);
}

Tensor addmm(Autograd& a, const Tensor& bias, const Tensor& x, const Tensor& y) {
  const Ref<Node> node = a.record("Addmm", addmm_backward, {&bias, &x, &y});
  if (node) {
    if (node->wants(2)) a.save_input(*node, kLeft, x);
    if (node->wants(1)) a.save_input(*node, kRight, y);
    remember_layouts(*node, x, y);
  }
  Tensor out = product(a, x, y);
  return a.attach(node, out);
}

Tensor bmm(Autograd& a, const Tensor& x, const Tensor& y) {
  const Ref<Node> node = a.record("Bmm", bmm_backward, {&x, &y});
  if (node) {
    a.save_input(*node, kRight, y);
    a.save_input(*node, kLeft, x);
  }
  count_bmm(a, x.shape(), y.size(2));
  Tensor out = a.empty({x.size(0), x.size(1), y.size(2)}, x.dtype());
  return a.attach(node, out);
}

Tensor linear(Autograd& a, const Tensor& x, const Tensor& w, const Tensor& bias) {
  Dims out_shape = x.shape();
  out_shape[out_shape.size() - 1] = w.size(0);
  const Dims rows{-1, x.shape().back()};
  if (!bias) {
    const Tensor wt = transpose(a, w, 0, 1);
    if (x.rank() == 2) return mm(a, x, wt);
    return unsafe_view(a, mm(a, reshape(a, x, rows), wt), out_shape);
  }
  if (x.rank() == 2) return addmm(a, bias, x, transpose(a, w, 0, 1));
  const Tensor x2 = reshape(a, x, rows);
  return view(a, addmm(a, bias, x2, transpose(a, w, 0, 1)), out_shape);
}

Tensor matmul4(Autograd& a, const Tensor& x, const Tensor& y) {
  const Dims batch{x.size(0), x.size(1)};
  const std::int64_t n = checked_mul(batch[0], batch[1]);
  const Tensor x3 = reshape(a, expand(a, x, x.shape()), {n, x.size(2), x.size(3)});
  const Tensor y3 = reshape(a, expand(a, y, y.shape()), {n, y.size(2), y.size(3)});
  return unsafe_view(a, bmm(a, x3, y3), {batch[0], batch[1], x.size(2), y.size(3)});
}

}  // namespace plimsoll::network::rules
