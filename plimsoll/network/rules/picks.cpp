#include "plimsoll/network/rules/picks.hpp"

#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::network::rules {
namespace {

// The gradient of a part is written into zeros of the whole.
void part_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  out[0] = a.empty(node.input(0).shape, in[0].dtype());
}

// Views of the two halves, as select gives them.
void stack_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  Dims shape = in[0].shape();
  Dims strides = in[0].strides();
  shape.erase(shape.size() - 1);
  strides.erase(strides.size() - 1);
  for (std::size_t i = 0; i < 2; ++i) {
    if (node.wants(i)) out[i] = a.tracked_view(in[0], shape, strides);
  }
}

void pick_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor list = a.unpack(node, 0);
  out[0] = a.empty(node.input(0).shape, in[0].dtype());
}

}  // namespace

Tensor select(Autograd& a, const Tensor& t, std::size_t dim) {
  const Ref<Node> node = a.record("Select", part_backward, {&t});
  Dims shape = t.shape();
  Dims strides = t.strides();
  shape.erase(dim);
  strides.erase(dim);
  Tensor out = a.tracked_view(t, shape, strides);
  return a.attach(node, out);
}

Tensor every_second(Autograd& a, const Tensor& t, std::int64_t first) {
  const Ref<Node> node = a.record("Slice", part_backward, {&t});
  Dims shape = t.shape();
  Dims strides = t.strides();
  const std::size_t last = shape.size() - 1;
  shape[last] = (shape[last] - first + 1) / 2;
  strides[last] *= 2;
  Tensor out = a.tracked_view(t, shape, strides);
  return a.attach(node, out);
}

Tensor stack_last(Autograd& a, const Tensor& x, const Tensor& y) {
  const Ref<Node> node = a.record("Stack", stack_backward, {&x, &y});
  Dims shape = x.shape();
  shape.push_back(2);
  Tensor out = a.empty(shape, promote({&x, &y}));
  return a.attach(node, out);
}

Tensor pick_one(Autograd& a, const Tensor& t, std::size_t dim) {
  const Tensor list = a.empty({1}, DType::kInt64);
  const Ref<Node> node = a.record("Index", pick_backward, {&t});
  if (node) a.save_input(*node, 0, list);
  Dims shape = t.shape();
  shape[dim] = 1;
  Tensor out = a.empty(shape, t.dtype());
  return a.attach(node, out);
}

}  // namespace plimsoll::network::rules
