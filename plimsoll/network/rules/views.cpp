#include "plimsoll/network/rules/views.hpp"

#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::network::rules {
namespace {

void reshape_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  out[0] = reshape_gradient(a, in[0], node.input(0).shape);
}

void transpose_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  out[0] = transposed(a, in[0], node.dim, node.dim2);
}

// squeeze of the dimension that unsqueeze made.
void unsqueeze_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  Dims shape = in[0].shape();
  Dims strides = in[0].strides();
  shape.erase(node.dim);
  strides.erase(node.dim);
  out[0] = a.tracked_view(in[0], shape, strides);
}

void slice_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  out[0] = a.empty(node.input(0).shape, in[0].dtype());
}

// cat of the parts' gradients; a part that nobody used contributes zeros.
void split_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const OutputMeta& whole = node.input(0);
  Gradients parts;
  for (std::size_t i = 0; i < in.size(); ++i) {
    parts.push_back(in[i] ? in[i] : a.empty(node.output.shape, whole.dtype));
  }
  out[0] = a.empty(whole.shape, whole.dtype);
}

// Narrow views of the gradient: every part keeps the whole storage alive.
void cat_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    if (!node.wants(i)) continue;
    Dims shape = in[0].shape();
    shape[node.dim] = node.input(i).shape[node.dim];
    out[i] = a.tracked_view(in[0], shape, in[0].strides());
  }
}

// The gradient summed over the expanded dimensions.
void expand_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Dims& shape = node.input(0).shape;
  out[0] = in[0].shape() == shape ? in[0] : sum_to(a, in[0], shape);
}

}  // namespace

Tensor view(Autograd& a, const Tensor& t, const Dims& wanted) {
  const Dims shape = resolve(wanted, t.shape());
  const Ref<Node> node = a.record("View", reshape_backward, {&t});
  const ViewStrides strides = view_strides(t.shape(), t.strides(), shape);
  check(strides.possible, "view of a tensor whose strides do not allow it");
  Tensor out = a.tracked_view(t, shape, strides.strides);
  return a.attach(node, out);
}

Tensor transpose(Autograd& a, const Tensor& t, std::size_t d0, std::size_t d1) {
  const Ref<Node> node = a.record("Transpose", transpose_backward, {&t});
  if (node) {
    node->dim = static_cast<std::uint8_t>(d0);
    node->dim2 = static_cast<std::uint8_t>(d1);
  }
  Tensor out = transposed(a, t, d0, d1);
  return a.attach(node, out);
}

Tensor unsqueeze(Autograd& a, const Tensor& t, std::size_t dim) {
  const Ref<Node> node = a.record("Unsqueeze", unsqueeze_backward, {&t});
  if (node) node->dim = static_cast<std::uint8_t>(dim);
  Dims shape = t.shape();
  Dims strides = t.strides();
  strides.insert(dim, dim < t.rank() ? t.size(dim) * t.strides()[dim] : 1);
  shape.insert(dim, 1);
  Tensor out = a.tracked_view(t, shape, strides);
  return a.attach(node, out);
}

Tensor slice(Autograd& a, const Tensor& t, std::size_t dim, std::int64_t start, std::int64_t stop) {
  const Ref<Node> node = a.record("Slice", slice_backward, {&t});
  Dims shape = t.shape();
  shape[dim] = stop - start;
  Tensor out = a.tracked_view(t, shape, t.strides());
  return a.attach(node, out);
}

Few<Tensor, kFewEdges> split(Autograd& a, const Tensor& t, std::int64_t size, std::size_t dim) {
  const Ref<Node> node = a.record("Split", split_backward, {&t});
  Few<Tensor, kFewEdges> parts;
  Dims shape = t.shape();
  shape[dim] = size;
  for (std::int64_t start = 0; start < t.size(dim); start += size) {
    Tensor part = a.tracked_view(t, shape, t.strides());
    parts.push_back(a.attach(node, part));
  }
  return parts;
}

Tensor cat(Autograd& a, std::span<const Tensor> parts, std::size_t dim) {
  check(!parts.empty(), "cat of nothing");
  const Ref<Node> node = a.record("Cat", cat_backward, parts);
  Dims shape = parts[0].shape();
  shape[dim] = 0;
  for (const Tensor& p : parts) shape[dim] += p.size(dim);
  if (node) node->dim = static_cast<std::uint8_t>(dim);
  Tensor out = a.empty(shape, parts[0].dtype());
  return a.attach(node, out);
}

Tensor expand(Autograd& a, const Tensor& t, const Dims& shape) {
  const Ref<Node> node = a.record("Expand", expand_backward, {&t});
  Tensor out = expanded(a, t, shape);
  return a.attach(node, out);
}

Tensor clone(Autograd& a, const Tensor& t) {
  const Ref<Node> node = a.record("Clone", hand_on, {&t});
  Tensor out = a.empty(t.shape(), t.dtype());
  return a.attach(node, out);
}

Tensor contiguous(Autograd& a, const Tensor& t) { return t.contiguous() ? t : clone(a, t); }

Tensor unsafe_view(Autograd& a, const Tensor& t, const Dims& shape) {
  const Ref<Node> node = a.record("UnsafeView", reshape_backward, {&t});
  Tensor out = a.plain_view(t, shape, contiguous_strides(shape));
  return a.attach(node, out);
}

Tensor reshape(Autograd& a, const Tensor& t, const Dims& wanted) {
  const Dims shape = resolve(wanted, t.shape());
  if (view_strides(t.shape(), t.strides(), shape).possible) return view(a, t, shape);
  return unsafe_view(a, clone(a, t), shape);
}

}  // namespace plimsoll::network::rules
