#include "plimsoll/network/rules/elementwise.hpp"

#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::network::rules {
namespace {

constexpr std::size_t kSelf = 0;
constexpr std::size_t kOther = 1;

void mul_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor other = a.unpack(node, kOther);
  const Tensor self = a.unpack(node, kSelf);
  if (node.wants(1)) out[1] = pointwise(a, {&in[0], &self});
  if (node.wants(0)) out[0] = pointwise(a, {&in[0], &other});
}

void mul_number_backward(Autograd& a, Node&, Gradients& in, Gradients& out) {
  out[0] = with_number(a, in[0]);
}

void neg_backward(Autograd& a, Node&, Gradients& in, Gradients& out) {
  out[0] = empty_like(a, in[0]);
}

void pow2_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor x = a.unpack(node, kSelf);
  const Tensor power = empty_like(a, x);
  const Tensor product = with_number(a, power);  // the exponent
  out[0] = pointwise(a, {&in[0], &product});
}

void rsqrt_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor result = a.unpack(node, kSelf);
  const Tensor cube = empty_like(a, result);
  const Tensor half = with_number(a, in[0]);
  out[0] = pointwise(a, {&half, &cube});
}

void mean_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  out[0] = with_number(a, expanded(a, in[0], node.input(0).shape), DType::kInt64);
}

// The library lists relu's result before the gradient, which decides the layout of what comes out.
void relu_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor result = a.unpack(node, kSelf);
  out[0] = pointwise(a, {&result, &in[0]});
}

// The exact fp32 gelu goes through oneDNN when x is contiguous: a gradient of another layout is reordered
// in two copies.
void gelu_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor x = a.unpack(node, kSelf);
  out[0] = pointwise(a, {&in[0], &x});
  const bool reorders = a.facts.gelu_backward_reorders && x.dtype() == DType::kFloat32 &&
                        x.contiguous() && !in[0].contiguous();
  if (!reorders) return;
  const Tensor plain = a.scratch(x.shape(), x.dtype());
  a.scratch(x.shape(), x.dtype());
}

// gelu (tanh), silu: gradient and input.
void activation_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor saved = a.unpack(node, kSelf);
  out[0] = pointwise(a, {&in[0], &saved});
}

// The gradient where x lies between the bounds: two comparisons, then a choice with zero.
void clamp_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor x = a.unpack(node, kSelf);
  const Tensor zero = a.scratch({}, in[0].dtype());
  const Tensor above = compared_with_number(a, x);
  const Tensor below = compared_with_number(a, x);
  out[0] = chosen(a, above, in[0]);
}

void cast_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  out[0] = cast(a, in[0], node.input(0).dtype);
}

// native_dropout: grad * mask * scale in one kernel.
void native_dropout_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor mask = a.unpack(node, kSelf);
  out[0] = empty_like(a, in[0]);
}

// A 16-bit mean is summed and divided in fp32: a wide sum, and a wide copy of x while it is summed.
void narrow_mean(Autograd& a, const Tensor& x) {
  Dims shape = x.shape();
  shape[shape.size() - 1] = 1;
  const Tensor wide_sum = a.scratch(shape, DType::kFloat32);
  cast(a, x, DType::kFloat32);
  in_place_with_number(a, wide_sum, DType::kInt64);
}

Tensor activation(Autograd& a, const char* name, Formula formula, const Tensor& x) {
  const Ref<Node> node = a.record(name, formula, {&x});
  if (node) a.save_input(*node, kSelf, x);
  Tensor out = empty_like(a, x);
  return a.attach(node, out);
}

}  // namespace

Tensor add(Autograd& a, const Tensor& x, const Tensor& y) {
  const Ref<Node> node = a.record("Add", add_backward, {&x, &y});
  Tensor out = pointwise(a, {&x, &y});
  return a.attach(node, out);
}

// An operand is saved only when the other one needs a gradient.
Tensor mul(Autograd& a, const Tensor& x, const Tensor& y) {
  const Ref<Node> node = a.record("Mul", mul_backward, {&x, &y});
  if (node && node->wants(1)) a.save_input(*node, kSelf, x);
  if (node && node->wants(0)) a.save_input(*node, kOther, y);
  Tensor out = pointwise(a, {&x, &y});
  return a.attach(node, out);
}

Tensor mul_number(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("MulScalar", mul_number_backward, {&x});
  Tensor out = with_number(a, x);
  return a.attach(node, out);
}

Tensor add_number(Autograd& a, const Tensor& x, bool in_place) {
  const Ref<Node> node = a.record("AddScalar", hand_on, {&x});
  if (in_place) {
    in_place_with_number(a, x);
    Tensor same = x;
    return a.attach(node, same);
  }
  Tensor out = with_number(a, x);
  return a.attach(node, out);
}

Tensor neg(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("Neg", neg_backward, {&x});
  Tensor out = empty_like(a, x);
  return a.attach(node, out);
}

Tensor pow2(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("Pow", pow2_backward, {&x});
  if (node) a.save_input(*node, kSelf, x);
  Tensor out = empty_like(a, x);
  return a.attach(node, out);
}

Tensor rsqrt(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("Rsqrt", rsqrt_backward, {&x});
  Tensor out = empty_like(a, x);
  if (node) a.save_output(*node, kSelf, out);
  return a.attach(node, out);
}

Tensor mean_last(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("Mean", mean_backward, {&x});
  Tensor out = sum_last(a, x);
  if (size_of(x.dtype()) < 4 && a.facts.cast_operands) {
    narrow_mean(a, x);
  } else {
    in_place_with_number(a, out, DType::kInt64);  // divided by a count
  }
  return a.attach(node, out);
}

Tensor gelu(Autograd& a, const Tensor& x) { return activation(a, "Gelu", gelu_backward, x); }
Tensor gelu_tanh(Autograd& a, const Tensor& x) {
  return activation(a, "Gelu", activation_backward, x);
}
Tensor silu(Autograd& a, const Tensor& x) { return activation(a, "Silu", activation_backward, x); }

Tensor tanh(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("Tanh", activation_backward, {&x});
  Tensor out = empty_like(a, x);
  if (node) a.save_output(*node, kSelf, out);
  return a.attach(node, out);
}

Tensor clamp(Autograd& a, const Tensor& x) { return activation(a, "Clamp", clamp_backward, x); }

Tensor relu(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("Relu", relu_backward, {&x});
  Tensor out = empty_like(a, x);
  if (node) a.save_output(*node, kSelf, out);
  return a.attach(node, out);
}

Tensor relu_in_place(Autograd& a, Tensor& x) {
  const Ref<Node> node = a.record("Relu", relu_backward, {&x});
  if (node) a.save_output(*node, kSelf, x);
  return a.attach(node, x);
}

Tensor dropout(Autograd& a, const Tensor& x) {
  if (a.facts.dropout_mask_of_input) {
    const Tensor noise = empty_like(a, x);
    in_place_with_number(a, noise);
    return mul(a, x, noise);
  }
  const Ref<Node> node = a.record("NativeDropout", native_dropout_backward, {&x});
  Tensor out = empty_like(a, x);
  const Tensor mask = a.empty_strided(x.shape(), x.strides(), DType::kBool, a.tag);
  if (node) a.save_output(*node, kSelf, mask);
  return a.attach(node, out);
}

Tensor to(Autograd& a, const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const Ref<Node> node = a.record("ToCopy", cast_backward, {&x});
  Tensor out = cast(a, x, dtype);
  return a.attach(node, out);
}

}  // namespace plimsoll::network::rules
