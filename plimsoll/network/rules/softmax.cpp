#include "plimsoll/network/rules/softmax.hpp"

#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::network::rules {
void softmax_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor result = a.unpack(node, 0);
  out[0] = a.empty(result.shape(), result.dtype());
  const Tensor gradient = contiguous_copy(a, in[0]);
}

Tensor softmax(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("Softmax", softmax_backward, {&x});
  Tensor out = a.empty(x.shape(), x.dtype());
  const Tensor copy = contiguous_copy(a, x);
  if (node) a.save_output(*node, 0, out);
  return a.attach(node, out);
}

}  // namespace plimsoll::network::rules
