// Layer norm.
#include <ATen/OpMathType.h>

#include "plimsoll/engine/dry/flavour.hpp"
#include "plimsoll/engine/dry/kernel_temporaries.hpp"
#include "plimsoll/engine/dry/meta_kernels.hpp"

namespace plimsoll::engine::dry {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

bool defined(const OptionalTensor& tensor) { return tensor.has_value() && tensor->defined(); }

at::Tensor contiguous_or_undefined(const OptionalTensor& tensor) {
  return defined(tensor) ? tensor->contiguous() : at::Tensor();
}

// The CPU kernel keeps statistics in the dtype of x unless fp32 weights stand beside a 16-bit x;
// the CUDA kernel always keeps them in at least fp32.
at::ScalarType statistics_type(const at::Tensor& x, const OptionalTensor& weight) {
  const bool mixed = defined(weight) && weight->scalar_type() != x.scalar_type();
  const bool wide = mixed || current_flavour() == Flavour::kCuda;
  return wide ? at::toOpMathType(x.scalar_type()) : x.scalar_type();
}

Three native_layer_norm(const at::Tensor& input, c10::SymIntArrayRef normalized,
                        const OptionalTensor& weight, const OptionalTensor& bias, double) {
  const at::Tensor x = input.contiguous();
  const at::Tensor w = contiguous_or_undefined(weight), b = contiguous_or_undefined(bias);
  std::vector<std::int64_t> shape = x.sizes().vec();
  std::fill(shape.end() - static_cast<std::ptrdiff_t>(normalized.size()), shape.end(), 1);
  const auto options = x.options().dtype(statistics_type(x, weight));
  at::Tensor out = at::empty_like(x);
  at::Tensor mean = at::empty(shape, options);
  at::Tensor rstd = at::empty(shape, options);
  return {std::move(out), std::move(mean), std::move(rstd)};
}

Three native_layer_norm_backward(const at::Tensor& gradient, const at::Tensor& input,
                                 c10::SymIntArrayRef normalized, const at::Tensor&,
                                 const at::Tensor&, const OptionalTensor& weight,
                                 const OptionalTensor& bias, std::array<bool, 3> needed) {
  const at::Tensor x = input.contiguous();
  const at::Tensor w = contiguous_or_undefined(weight), b = contiguous_or_undefined(bias);
  Three out;
  if (needed[0]) std::get<0>(out) = at::empty_like(x);
  if (needed[1]) std::get<1>(out) = at::empty_like(w);
  if (needed[2]) std::get<2>(out) = at::empty_like(b);
  if ((needed[1] || needed[2]) && current_flavour() == Flavour::kCpu) {
    std::int64_t row = 1;
    for (const c10::SymInt& size : normalized) row *= size.expect_int();
    // Partial sums of both weights' gradients, per thread.
    const at::Tensor sums = at::empty({2 * at::get_num_threads(), row}, x.options());
  }
  static_cast<void>(gradient);
  return out;
}

}  // namespace

void register_norm_kernels(torch::Library& meta) {
  add_if_missing(meta, "native_layer_norm", TORCH_FN(native_layer_norm));
  add_if_missing(meta, "native_layer_norm_backward", TORCH_FN(native_layer_norm_backward));
}

}  // namespace plimsoll::engine::dry
