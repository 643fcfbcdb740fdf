#include "plimsoll/network/rules/convolution.hpp"

#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::network::rules {
namespace {

constexpr std::int64_t kWindow = 9;  // 3 x 3

void count(Autograd& a, const Dims& x, std::int64_t out_channels) {
  const std::int64_t pixels = checked_mul(checked_mul(x[0], x[2]), x[3]);
  const std::int64_t per_pixel = checked_mul(2 * kWindow * out_channels, x[1]);
  a.flops.convolution = checked_add(a.flops.convolution, checked_mul(pixels, per_pixel));
}

// One call computes all three gradients: input, weight, bias.
void conv2d_backward(Autograd& a, Node& node, Gradients&, Gradients& out) {
  const Tensor x = a.unpack(node, 0);
  const Tensor w = a.unpack(node, 1);
  if (node.wants(0)) {
    out[0] = a.empty(x.shape(), x.dtype());
    count(a, x.shape(), w.size(0));
  }
  if (node.wants(1)) {
    out[1] = a.empty(w.shape(), w.dtype());
    count(a, x.shape(), w.size(0));
  }
  if (node.wants(2)) out[2] = a.empty({w.size(0)}, w.dtype());
}

void max_pool2_backward(Autograd& a, Node& node, Gradients&, Gradients& out) {
  const Tensor x = a.unpack(node, 0);
  const Tensor indices = a.unpack(node, 1);
  out[0] = a.empty(x.shape(), x.dtype());
}

}  // namespace

Tensor conv2d(Autograd& a, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Ref<Node> node = a.record("Convolution", conv2d_backward, {&x, &weight, &bias});
  if (node) {
    a.save_input(*node, 0, x);
    a.save_input(*node, 1, weight);
  }
  count(a, x.shape(), weight.size(0));
  Tensor out = a.empty({x.size(0), weight.size(0), x.size(2), x.size(3)}, x.dtype());
  return a.attach(node, out);
}

Tensor max_pool2(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("MaxPool2", max_pool2_backward, {&x});
  if (node) a.save_input(*node, 0, x);
  const Dims shape{x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2};
  Tensor out = a.empty(shape, x.dtype());
  const Tensor indices = a.empty(shape, DType::kInt64);
  if (node) a.save_output(*node, 1, indices);
  return a.attach(node, out);
}

}  // namespace plimsoll::network::rules
