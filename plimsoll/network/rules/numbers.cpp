#include "plimsoll/network/rules/numbers.hpp"

#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::network::rules {
namespace {

// What an operation with an existing number allocates: the number's cast, then the result.
Tensor with_kept_number(Autograd& a, const Tensor& t) {
  Tensor cast;
  if (a.facts.number_blocks && t.dtype() != DType::kFloat64) cast = a.scratch({}, t.dtype());
  return like_with_number(a, t);
}

void number_backward(Autograd& a, Node&, Gradients& in, Gradients& out) {
  out[0] = with_kept_number(a, in[0]);
}

Tensor apply_number(Autograd& a, const char* name, Tensor& x, bool in_place) {
  Tensor number;
  if (a.facts.number_blocks) number = a.scratch({}, DType::kFloat64);
  const Ref<Node> node = a.record(name, number_backward, {&x});
  if (node) node->number = number;
  if (in_place) {
    if (a.facts.number_blocks && x.dtype() != DType::kFloat64) a.scratch({}, x.dtype());
    Tensor same = x;
    return a.attach(node, same);
  }
  Tensor out = with_kept_number(a, x);
  return a.attach(node, out);
}

}  // namespace

Tensor scale(Autograd& a, Tensor& x, bool in_place) { return apply_number(a, "Mul", x, in_place); }

Tensor divide(Autograd& a, Tensor& x, bool in_place) { return apply_number(a, "Div", x, in_place); }

}  // namespace plimsoll::network::rules
