#include "plimsoll/network/rules/loss.hpp"

#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::network::rules {
namespace {

// A dense gradient of the whole table; then a gradient that is not contiguous is copied.
void embedding_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor ids = a.unpack(node, 0);
  out[0] = a.empty(node.input(0).shape, in[0].dtype());
  if (!in[0].contiguous()) a.scratch(in[0].shape(), in[0].dtype());
}

// The kernel reads rows: an operand that is not contiguous is copied for its duration.
Tensor contiguous_copy(Autograd& a, const Tensor& t) {
  return t.contiguous() ? Tensor() : a.scratch(t.shape(), t.dtype());
}

void log_softmax_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor result = a.unpack(node, 0);
  out[0] = a.empty(result.shape(), result.dtype());
  const Tensor copy = contiguous_copy(a, in[0]);
}

void nll_loss_backward(Autograd& a, Node& node, Gradients&, Gradients& out) {
  const Tensor x = a.unpack(node, 0);
  const Tensor target = a.unpack(node, 1);
  const Tensor total_weight = a.unpack(node, 2);
  out[0] = a.empty(x.shape(), x.dtype());
}

Tensor log_softmax(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("LogSoftmax", log_softmax_backward, {&x});
  Tensor out = a.empty(x.shape(), x.dtype());
  const Tensor copy = contiguous_copy(a, x);
  if (node) a.save_output(*node, 0, out);
  return a.attach(node, out);
}

Tensor nll_loss(Autograd& a, const Tensor& x, const Tensor& target) {
  const Ref<Node> node = a.record("NllLoss", nll_loss_backward, {&x});
  if (node) {
    a.save_input(*node, 0, x);
    a.save_input(*node, 1, target);
  }
  Tensor out = a.empty({}, x.dtype());
  const Tensor total_weight = a.empty({}, x.dtype());
  if (node) a.save_output(*node, 2, total_weight);
  return a.attach(node, out);
}

}  // namespace

Tensor embedding(Autograd& a, const Tensor& ids, const Tensor& weight) {
  const Ref<Node> node = a.record("Embedding", embedding_backward, {&weight});
  if (node) a.save_input(*node, 0, ids);
  Dims shape = ids.shape();
  shape.push_back(weight.size(1));
  Tensor out = a.empty(shape, weight.dtype());
  return a.attach(node, out);
}

Tensor cross_entropy(Autograd& a, const Tensor& x, const Tensor& target) {
  return nll_loss(a, log_softmax(a, x), target);
}

}  // namespace plimsoll::network::rules
