#include "plimsoll/network/rules/normalisation.hpp"

#include "plimsoll/network/rules/elementwise.hpp"
#include "plimsoll/network/rules/kernels.hpp"
#include "plimsoll/network/rules/views.hpp"

namespace plimsoll::network::rules {
namespace {

// layer_norm saves input, weight, bias, mean, rstd in slots 0..4.
void layer_norm_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor x = a.unpack(node, 0);
  const Tensor w = a.unpack(node, 1);
  const Tensor b = a.unpack(node, 2);
  const Tensor mean = a.unpack(node, 3);
  const Tensor rstd = a.unpack(node, 4);
  const Tensor x_copy = contiguous_copy(a, x);
  if (node.wants(0)) out[0] = a.empty(x.shape(), x.dtype());
  if (node.wants(1)) out[1] = empty_like(a, w);
  if (node.wants(2)) out[2] = empty_like(a, w);
  const Tensor gradient_copy = contiguous_copy(a, in[0]);
  if (a.facts.layer_norm_backward_scratch && (node.wants(1) || node.wants(2))) {
    a.scratch({2 * a.facts.threads, x.shape().back()}, x.dtype());
  }
}

// The fused kernel saves input, weight, rstd in slots 0..2.
void fused_rms_norm_backward(Autograd& a, Node& node, Gradients&, Gradients& out) {
  const Tensor x = a.unpack(node, 0);
  const Tensor w = a.unpack(node, 1);
  const Tensor rstd = a.unpack(node, 2);
  if (node.wants(0)) out[0] = empty_like(a, x);
  if (node.wants(1)) out[1] = empty_like(a, w);
}

Dims statistics_shape(const Tensor& x) {
  Dims shape = x.shape();
  shape[shape.size() - 1] = 1;
  return shape;
}

Tensor fused_rms_norm(Autograd& a, const Tensor& x, const Tensor& w) {
  const Ref<Node> node = a.record("FusedRmsNorm", fused_rms_norm_backward, {&x, &w});
  if (node) {
    a.save_input(*node, 0, x);
    a.save_input(*node, 1, w);
  }
  Tensor out = a.empty(x.shape(), x.dtype());
  const Tensor rstd = a.empty(statistics_shape(x), DType::kFloat32);
  if (node) a.save_output(*node, 2, rstd);
  return a.attach(node, out);
}

// rsqrt(mean(x^2) + eps) as the library writes it: square, mean and sum die with the expression.
Tensor reciprocal_norm(Autograd& a, const Tensor& x) {
  const Tensor square = pow2(a, x);
  Tensor mean = mean_last(a, square);
  mean = add_number(a, mean, /*in_place=*/true);
  return rsqrt(a, mean);
}

// native_batch_norm saves input, weight, running mean and variance, mean, rstd in slots 0..5. The
// library's backward makes the input's gradient twice and keeps the second.
void batch_norm_backward(Autograd& a, Node& node, Gradients&, Gradients& out) {
  const Tensor x = a.unpack(node, 0);
  const Tensor w = a.unpack(node, 1);
  const Tensor running_mean = a.unpack(node, 2);
  const Tensor running_var = a.unpack(node, 3);
  const Tensor mean = a.unpack(node, 4);
  const Tensor rstd = a.unpack(node, 5);
  if (node.wants(0)) out[0] = empty_like(a, x);
  if (node.wants(1)) out[1] = empty_like(a, w);
  if (node.wants(2)) out[2] = empty_like(a, w);
  if (node.wants(0) && a.facts.batch_norm_scratch) out[0] = empty_like(a, x);
}

// Sums per channel while the statistics are computed, then factors while they are applied.
void batch_norm_scratch(Autograd& a, const Tensor& w) {
  if (!a.facts.batch_norm_scratch) return;
  {
    const Tensor sum = a.scratch(w.shape(), w.dtype());
    const Tensor variance = a.scratch(w.shape(), w.dtype());
  }
  const DType wide = size_of(w.dtype()) < 4 ? DType::kFloat32 : w.dtype();
  const Tensor scale = a.scratch(w.shape(), wide);
  const Tensor shift = a.scratch(w.shape(), wide);
}

}  // namespace

Tensor layer_norm(Autograd& a, const Tensor& x, const Tensor& w, const Tensor& b) {
  const Ref<Node> node = a.record("NativeLayerNorm", layer_norm_backward, {&x, &w, &b});
  if (node) {
    a.save_input(*node, 0, x);
    if (w) a.save_input(*node, 1, w);
    if (b) a.save_input(*node, 2, b);
  }
  const bool narrow = size_of(x.dtype()) < 4;
  const bool mixed = w && w.dtype() != x.dtype();
  const bool widen = narrow && (mixed || a.facts.norm_statistics_fp32);
  const DType statistics = widen ? DType::kFloat32 : x.dtype();
  const Tensor x_copy = contiguous_copy(a, x);
  Tensor out = a.empty(x.shape(), x.dtype());
  const Tensor mean = a.empty(statistics_shape(x), statistics);
  const Tensor rstd = a.empty(statistics_shape(x), statistics);
  if (node) {
    a.save_output(*node, 3, mean);
    a.save_output(*node, 4, rstd);
  }
  return a.attach(node, out);
}

Tensor rms_norm(Autograd& a, const Tensor& x, const Tensor& w) {
  if (a.facts.rms_norm_fused) return fused_rms_norm(a, x, w);
  const bool narrow = size_of(x.dtype()) < 4;
  Tensor wide = narrow ? to(a, x, DType::kFloat32) : x;
  const Tensor rstd = reciprocal_norm(a, wide);
  Tensor y = mul(a, wide, rstd);
  y = mul(a, y, w);
  y = contiguous(a, y);
  wide.reset();
  return to(a, y, x.dtype());
}

Tensor batch_norm(Autograd& a, const Tensor& x, const Tensor& w, const Tensor& b,
                  const Tensor& running_mean, const Tensor& running_var) {
  const Ref<Node> node = a.record("NativeBatchNorm", batch_norm_backward, {&x, &w, &b});
  if (node) {
    a.save_input(*node, 0, x);
    a.save_input(*node, 1, w);
    a.save_input(*node, 2, running_mean);
    a.save_input(*node, 3, running_var);
  }
  const bool widen = size_of(w.dtype()) < 4 && a.facts.norm_statistics_fp32;
  const DType statistics = widen ? DType::kFloat32 : w.dtype();
  Tensor out = empty_like(a, x);
  const Tensor mean = a.empty(w.shape(), statistics);
  const Tensor rstd = a.empty(w.shape(), statistics);
  batch_norm_scratch(a, w);
  if (node) {
    a.save_output(*node, 4, mean);
    a.save_output(*node, 5, rstd);
  }
  return a.attach(node, out);
}

}  // namespace plimsoll::network::rules
