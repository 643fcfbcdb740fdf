#include "plimsoll/network/rules/products.hpp"

#include <algorithm>
#include <utility>

#include "plimsoll/network/rules/kernels.hpp"
#include "plimsoll/network/rules/views.hpp"

namespace plimsoll::network::rules {
namespace {

constexpr std::size_t kLeft = 0;
constexpr std::size_t kRight = 1;

// A matrix as BLAS sees it: sizes and strides of two dimensions.
struct Matrix {
  std::int64_t rows, columns, row_stride, column_stride;

  Matrix transposed() const { return {columns, rows, column_stride, row_stride}; }
};

Matrix matrix_of(const Tensor& t, std::size_t first_dim) {
  return {t.size(first_dim), t.size(first_dim + 1), t.strides()[first_dim],
          t.strides()[first_dim + 1]};
}

// BLAS reads a matrix whose rows or columns are contiguous and at least as far apart as they are
// long. A dimension of size 1 with a foreign stride fails that, and the operand is copied.
bool readable_by_blas(const Matrix& m) {
  const auto at_least_one = [](std::int64_t n) { return std::max<std::int64_t>(1, n); };
  return (m.row_stride == 1 && m.column_stride >= at_least_one(m.rows)) ||
         (m.column_stride == 1 && m.row_stride >= at_least_one(m.columns));
}

// The copies that a product makes after its output exists.
void copy_operands(Autograd& a, const Matrix& x, const Matrix& y, DType dtype) {
  if (!a.facts.copy_blas_operands) return;
  Tensor left;
  Tensor right;
  // A result of one column is computed as x y, any other one as (y^T x^T)^T: then y is looked at
  // first.
  const bool x_first = y.columns == 1;
  if (x_first && !readable_by_blas(x)) left = a.scratch({x.rows, x.columns}, dtype);
  if (!readable_by_blas(y)) right = a.scratch({y.rows, y.columns}, dtype);
  if (!x_first && !readable_by_blas(x)) left = a.scratch({x.rows, x.columns}, dtype);
}

Tensor product(Autograd& a, const Tensor& x, const Tensor& y) {
  const std::int64_t rows = x.size(0);
  const std::int64_t columns = y.size(1);
  a.count(&FlopCount::matmul, checked_mul(checked_mul(checked_mul(2, rows), columns), x.size(1)));
  const DType dtype = promote({&x, &y});
  Tensor out = a.empty({rows, columns}, dtype);
  copy_operands(a, matrix_of(x, 0), matrix_of(y, 0), dtype);
  return out;
}

// Is a matrix of these strides stored by columns?
bool by_columns(const Dims& strides, const Dims& shape) {
  return strides[0] == 1 && strides[1] == shape[0];
}

// g @ y^T, computed as (y @ g^T)^T when x was stored by columns.
Tensor left_gradient(Autograd& a, const Node& node, const Tensor& g, const Tensor& y) {
  const bool columns = node.layouts & 1;
  if (columns) return transposed(a, product(a, y, transposed(a, g, 0, 1)), 0, 1);
  return product(a, g, transposed(a, y, 0, 1));
}

// x^T @ g, computed as (g^T @ x)^T when y was stored by columns.
Tensor right_gradient(Autograd& a, const Node& node, const Tensor& g, const Tensor& x) {
  const bool columns = node.layouts & 2;
  if (columns) return transposed(a, product(a, transposed(a, g, 0, 1), x), 0, 1);
  return product(a, transposed(a, x, 0, 1), g);
}

void remember_layouts(Node& node, const Tensor& x, const Tensor& y) {
  node.layouts = static_cast<std::uint8_t>((by_columns(x.strides(), x.shape()) ? 1 : 0) |
                                           (by_columns(y.strides(), y.shape()) ? 2 : 0));
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

// The conventions say what attention needs, whichever kernel computes the whole square.
void count_bmm(Autograd& a, const Dims& x, std::int64_t columns, const AttentionSquare& square) {
  const std::int64_t flops =
      checked_mul(checked_mul(checked_mul(2, columns), x[0]), checked_mul(x[1], x[2]));
  if (square.queries == 0) {
    a.count(&FlopCount::matmul, flops);
    return;
  }
  const std::int64_t pairs = checked_mul(square.queries, square.keys);
  a.count(&FlopCount::attention_full, flops);
  a.count(&FlopCount::attention_exact, checked_mul(flops / pairs, square.seen));
}

// One step of a batched product: which operands are copied, and how often.
void copy_batch_operands(Autograd& a, std::int64_t batches, const Matrix& x, const Matrix& y,
                         DType dtype) {
  constexpr std::int64_t kSmallProduct = 400;  // below, a plain loop reads any strides
  if (checked_mul(checked_mul(x.rows, x.columns), y.columns) < kSmallProduct) return;
  const auto batched_blas_reads = [](const Matrix& m) {
    return (m.column_stride == 1 && (m.rows == 1 || m.row_stride >= m.columns)) ||
           (m.row_stride == 1 && (m.columns == 1 || m.column_stride >= m.rows));
  };
  const bool batched_blas = size_of(dtype) >= 4;  // 16-bit batches are multiplied one by one
  if (batched_blas && batched_blas_reads(x) && batched_blas_reads(y)) return;
  for (std::int64_t i = 0; i < batches; ++i) copy_operands(a, x, y, dtype);
}

Tensor batched_product(Autograd& a, const Tensor& x, const Tensor& y, bool transpose_x,
                       bool transpose_y, const AttentionSquare& square) {
  const Matrix left = transpose_x ? matrix_of(x, 1).transposed() : matrix_of(x, 1);
  const Matrix right = transpose_y ? matrix_of(y, 1).transposed() : matrix_of(y, 1);
  count_bmm(a, {x.size(0), left.rows, left.columns}, right.columns, square);
  Tensor out = a.empty({x.size(0), left.rows, right.columns}, x.dtype());
  copy_batch_operands(a, x.size(0), left, right, x.dtype());
  return out;
}

void bmm_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor y = a.unpack(node, kRight);
  const Tensor x = a.unpack(node, kLeft);
  if (node.wants(1)) out[1] = batched_product(a, x, in[0], true, false, node.square);
  if (node.wants(0)) out[0] = batched_product(a, in[0], y, false, true, node.square);
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

Tensor bmm(Autograd& a, const Tensor& x, const Tensor& y, const AttentionSquare& square) {
  const Ref<Node> node = a.record("Bmm", bmm_backward, {&x, &y});
  if (node && node->wants(0)) a.save_input(*node, kRight, y);
  if (node && node->wants(1)) a.save_input(*node, kLeft, x);
  if (node) node->square = square;
  Tensor out = batched_product(a, x, y, false, false, square);
  return a.attach(node, out);
}

namespace {

// Each product is scaled into a new tensor.
void baddbmm_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor x = a.unpack(node, kLeft);
  const Tensor y = a.unpack(node, kRight);
  if (node.wants(0)) {
    out[0] = with_number(a, batched_product(a, in[0], y, false, true, node.square));
  }
  if (node.wants(1)) {
    out[1] = with_number(a, batched_product(a, x, in[0], true, false, node.square));
  }
}

}  // namespace

Tensor baddbmm(Autograd& a, const Tensor& x, const Tensor& y, const AttentionSquare& square) {
  const Ref<Node> node = a.record("Baddbmm", baddbmm_backward, {&x, &y});
  if (node) {
    a.save_input(*node, kLeft, x);
    a.save_input(*node, kRight, y);
    node->square = square;
  }
  Tensor out = batched_product(a, x, y, false, false, square);
  return a.attach(node, out);
}

namespace {

// Can all dimensions but the last be merged without a copy?
bool rows_are_uniform(const Tensor& t) {
  for (std::size_t i = 0; i + 2 < t.rank(); ++i) {
    if (t.strides()[i] != t.strides()[i + 1] * t.size(i + 1)) return false;
  }
  return true;
}

// at::matmul of x [..., in] and w^T of w [out, in]: one large product, unless w is frozen and merging
// x's rows would copy them; then a batched product with w^T expanded. A view of a learning w counts
// as learning even where gradients are switched off, as inside a kept linear.
Tensor matmul_transposed(Autograd& a, const Tensor& x, const Tensor& w) {
  const Tensor matrix = transpose(a, w, 0, 1);
  if (x.rank() == 2) return mm(a, x, matrix);
  Dims out_shape = x.shape();
  out_shape[out_shape.size() - 1] = matrix.size(1);
  if (w.needs_grad() || x.elements() == 0 || rows_are_uniform(x)) {
    return unsafe_view(a, mm(a, reshape(a, x, {-1, x.shape().back()}), matrix), out_shape);
  }
  check(x.rank() == 3, "a batched product of more than three dimensions");
  const Dims batched{x.size(0), matrix.size(0), matrix.size(1)};
  const Tensor left = reshape(a, expand(a, x, x.shape()), x.shape());
  const Tensor wide =
      a.tracked_view(matrix, batched, {0, matrix.strides()[0], matrix.strides()[1]});
  return unsafe_view(a, bmm(a, left, reshape(a, wide, batched)), out_shape);
}

void add_bias_backward(Autograd&, Node& node, Gradients& in, Gradients& out) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (node.wants(i)) out[i] = in[0];
  }
}

}  // namespace

Tensor linear(Autograd& a, const Tensor& x, const Tensor& w, const Tensor& bias) {
  if (!bias) return matmul_transposed(a, x, w);
  if (x.rank() == 2) return addmm(a, bias, x, transpose(a, w, 0, 1));
  if (x.rank() == 3 && x.contiguous()) {
    const Tensor rows = reshape(a, x, {-1, x.shape().back()});
    const Tensor product = addmm(a, bias, rows, transpose(a, w, 0, 1));
    return view(a, product, {x.size(0), x.size(1), w.size(0)});
  }
  Tensor out = matmul_transposed(a, x, w);
  const Ref<Node> node = a.record("AddBias", add_bias_backward, {&out, &bias});  // in place
  return a.attach(node, out);
}

namespace {

// dx, dw, db in this order, as the engine's own formula computes them.
void kept_linear_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor x = a.unpack(node, kLeft);
  const Tensor w = a.unpack(node, kRight);
  const Tensor g = reshape_gradient(a, in[0], {in[0].elements() / w.size(0), w.size(0)});
  if (node.wants(0)) {
    const Tensor dx = product(a, g, w);
    out[0] = a.plain_view(dx, x.shape(), contiguous_strides(x.shape()));
  }
  if (node.wants(1)) {
    const Tensor rows = reshape_gradient(a, x, {x.elements() / w.size(1), w.size(1)});
    out[1] = product(a, transposed(a, g, 0, 1), rows);
  }
  if (node.wants(2)) out[2] = a.empty({w.size(0)}, in[0].dtype());
}

}  // namespace

Tensor kept_linear(Autograd& a, const Tensor& x, const Tensor& w, const Tensor& bias) {
  Frame* frame = a.current_frame();
  check(frame != nullptr, "a kept linear outside a checkpoint region");
  const Ref<Node> node = a.record("KeptLinear", kept_linear_backward, {&x, &w, &bias});
  Tensor out;
  if (node && a.recomputing()) {
    out = std::exchange(frame->outputs.at(frame->next_output++), Tensor());
  } else {
    const bool outer_mode = std::exchange(a.grad_mode, false);
    out = linear(a, x, w, bias);
    a.grad_mode = outer_mode;
    if (node && !a.recomputing()) a.keep_result(*frame, out);
  }
  if (node) {
    a.save_input(*node, kLeft, x);
    a.save_input(*node, kRight, w);
  }
  return a.attach(node, out);
}

Tensor matmul4(Autograd& a, const Tensor& x, const Tensor& y, const AttentionSquare& square) {
  const Dims batch = broadcast({x.size(0), x.size(1)}, {y.size(0), y.size(1)});
  const std::int64_t n = checked_mul(batch[0], batch[1]);
  const auto batches = [&](const Tensor& t) {
    const Tensor wide = expand(a, t, {batch[0], batch[1], t.size(2), t.size(3)});
    return reshape(a, wide, {n, t.size(2), t.size(3)});
  };
  const Tensor x3 = batches(x);
  const Tensor y3 = batches(y);
  return unsafe_view(a, bmm(a, x3, y3, square), {batch[0], batch[1], x.size(2), y.size(3)});
}

}  // namespace plimsoll::network::rules
