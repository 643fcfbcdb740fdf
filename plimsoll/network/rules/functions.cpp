#include "plimsoll/network/rules/functions.hpp"

#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::network::rules {
namespace {

// gradient * (3 * x^2)
void pow3_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor x = a.unpack(node, 0);
  const Tensor square = empty_like(a, x);
  const Tensor product = with_number(a, square);
  out[0] = pointwise(a, {&in[0], &product});
}

void sub_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  if (node.wants(1)) out[1] = empty_like(a, in[0]);  // negated
  if (node.wants(0)) out[0] = in[0];
}

}  // namespace

Tensor pow3(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("Pow", pow3_backward, {&x});
  if (node) a.save_input(*node, 0, x);
  Tensor out = empty_like(a, x);
  return a.attach(node, out);
}

Tensor sub(Autograd& a, const Tensor& x, const Tensor& y) {
  const Ref<Node> node = a.record("Sub", sub_backward, {&x, &y});
  Tensor out = pointwise(a, {&x, &y});
  return a.attach(node, out);
}

Tensor add_in_place(Autograd& a, Tensor& x, const Tensor& y) {
  const Ref<Node> node = a.record("Add", add_backward, {&x, &y});
  Tensor same = x;
  return a.attach(node, same);
}

}  // namespace plimsoll::network::rules
