// Layer norm, RMS norm as one kernel, batch norm, group norm.
// Letters: B batch, C channels.
#include <ATen/OpMathType.h>

#include "plimsoll/engine/dry/flavour.hpp"
#include "plimsoll/engine/dry/meta_kernels.hpp"

namespace plimsoll::engine::dry {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

bool on_cpu() { return current_flavour() == Flavour::kCpu; }

bool defined(const OptionalTensor& tensor) { return tensor.has_value() && tensor->defined(); }

Tensor contiguous_or_undefined(const OptionalTensor& tensor) {
  return defined(tensor) ? tensor->contiguous() : Tensor();
}

// The CPU kernels keep statistics in the dtype of x unless fp32 weights stand beside a 16-bit x;
// CUDA's always keep them in at least fp32.
at::ScalarType statistics_type(const Tensor& x, const OptionalTensor& weight) {
  const bool mixed = defined(weight) && weight->scalar_type() != x.scalar_type();
  return mixed || !on_cpu() ? at::toOpMathType(x.scalar_type()) : x.scalar_type();
}

// The shape of x with 1 in place of the normalised dimensions.
std::vector<std::int64_t> statistics_shape(const Tensor& x, std::size_t normalized) {
  std::vector<std::int64_t> shape = x.sizes().vec();
  std::fill(shape.end() - static_cast<std::ptrdiff_t>(normalized), shape.end(), 1);
  return shape;
}

// --- layer norm, RMS norm ------------------------------------------------------------------------

Three layer_norm(const Tensor& input, c10::SymIntArrayRef normalized, const OptionalTensor& weight,
                 const OptionalTensor& bias, double) {
  const Tensor x = input.contiguous();
  const Tensor w = contiguous_or_undefined(weight), b = contiguous_or_undefined(bias);
  const auto shape = statistics_shape(x, normalized.size());
  const auto options = x.options().dtype(statistics_type(x, weight));
  Tensor out = at::empty_like(x, at::MemoryFormat::Contiguous);
  Tensor mean = at::empty(shape, options);
  Tensor rstd = at::empty(shape, options);
  return {std::move(out), std::move(mean), std::move(rstd)};
}

// The CPU sums both weights' gradients per thread first.
void sum_rows_per_thread(const Tensor& gradient, const Tensor& x, c10::SymIntArrayRef normalized) {
  std::int64_t row = 1;
  for (const c10::SymInt& size : normalized) row *= size.expect_int();
  const Tensor copy = gradient.contiguous();
  const Tensor sums = at::empty({2 * at::get_num_threads(), row}, x.options());
}

Three layer_norm_backward(const Tensor& gradient, const Tensor& input,
                          c10::SymIntArrayRef normalized, const Tensor&, const Tensor&,
                          const OptionalTensor& weight, const OptionalTensor& bias,
                          std::array<bool, 3> needed) {
  const Tensor x = input.contiguous();
  const Tensor w = contiguous_or_undefined(weight), b = contiguous_or_undefined(bias);
  Three out;
  if (needed[0]) std::get<0>(out) = at::empty_like(x, at::MemoryFormat::Contiguous);
  if (needed[1]) std::get<1>(out) = at::empty_like(w);
  if (needed[2]) std::get<2>(out) = at::empty_like(b);
  if (!on_cpu()) return out;
  // The kernel reads the gradient as contiguous rows, whatever it computes.
  const Tensor rows = gradient.contiguous();
  if (needed[1] || needed[2]) sum_rows_per_thread(rows, x, normalized);
  return out;
}

std::tuple<Tensor, Tensor> fused_rms_norm(const Tensor& input, at::IntArrayRef normalized,
                                          const OptionalTensor&, std::optional<double>) {
  const Tensor x = input.contiguous();
  Tensor out = at::empty_like(x);
  return {std::move(out), at::empty(statistics_shape(x, normalized.size()), wide(x))};
}

std::tuple<Tensor, Tensor> fused_rms_norm_backward(const Tensor&, const Tensor& x, at::IntArrayRef,
                                                   const Tensor&, const OptionalTensor& weight,
                                                   std::array<bool, 2> needed) {
  std::tuple<Tensor, Tensor> out;
  if (needed[0]) std::get<0>(out) = at::empty_like(x);
  if (needed[1] && defined(weight)) std::get<1>(out) = at::empty_like(*weight);
  return out;
}

// --- batch norm ----------------------------------------------------------------------------------

// One value per image and channel, or channels inside: the kernel sums per thread.
bool channels_inside(const Tensor& x) {
  return x.numel() == x.size(0) * x.size(1) || !x.is_contiguous();
}

void scratch_of_statistics(const Tensor& x, const at::TensorOptions& statistics) {
  const std::int64_t channels = x.size(1);
  const Tensor mean = at::empty({channels}, statistics);
  const Tensor variance = at::empty({channels}, statistics);
  if (!channels_inside(x)) return;
  const Tensor sums = at::zeros({at::get_num_threads(), channels}, wide(x));
}

void scratch_of_transform(const Tensor& x) {
  const Tensor scale = at::empty({x.size(1)}, wide(x));
  const Tensor shift = at::empty({x.size(1)}, wide(x));
}

Three batch_norm(const Tensor& x, const OptionalTensor& weight, const OptionalTensor&,
                 const OptionalTensor&, const OptionalTensor&, bool training, double, double) {
  const auto statistics = x.options().dtype(statistics_type(x, weight));
  // In evaluation nothing is saved: the CPU's results are empty.
  const std::int64_t saved = training ? x.size(1) : 0;
  Three out;
  std::get<0>(out) = at::empty_like(x);
  std::get<1>(out) = at::empty({saved}, statistics);
  std::get<2>(out) = at::empty({saved}, statistics);
  if (!on_cpu()) return out;
  if (training) scratch_of_statistics(x, statistics);
  scratch_of_transform(x);
  return out;
}

// The CPU makes the gradient of x twice and drops the first.
Three batch_norm_backward(const Tensor&, const Tensor& x, const OptionalTensor& weight,
                          const OptionalTensor&, const OptionalTensor&, const OptionalTensor& mean,
                          const OptionalTensor& rstd, bool training, double,
                          std::array<bool, 3> needed) {
  const auto options = defined(weight) ? weight->options() : x.options();
  Three out;
  if (needed[0]) std::get<0>(out) = at::empty_like(x);
  if (needed[1]) std::get<1>(out) = at::empty({x.size(1)}, options);
  if (needed[2]) std::get<2>(out) = at::empty({x.size(1)}, options);
  if (!on_cpu()) return out;
  if (needed[0]) std::get<0>(out) = at::empty_like(x);
  if (!channels_inside(x)) return out;
  std::vector<Tensor> casts;
  if (x.element_size() < 4) {
    for (const OptionalTensor* read : {&mean, &rstd, &weight}) {
      if (training && defined(*read)) casts.push_back(at::empty((*read)->sizes(), wide(x)));
    }
  }
  const Tensor sums = at::zeros({2, at::get_num_threads(), x.size(1)}, wide(x));
  return out;
}

// --- group norm ----------------------------------------------------------------------------------

Three group_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                 c10::SymInt batch, c10::SymInt, c10::SymInt, std::int64_t groups, double) {
  const Tensor x = input.contiguous(input.suggest_memory_format());
  const Tensor w = contiguous_or_undefined(weight), b = contiguous_or_undefined(bias);
  const auto options = x.options().dtype(statistics_type(x, weight));
  Three out;
  std::get<0>(out) = at::empty_like(x);
  std::get<1>(out) = at::empty({batch.expect_int(), groups}, options);
  std::get<2>(out) = at::empty({batch.expect_int(), groups}, options);
  return out;
}

Three group_norm_backward(const Tensor&, const Tensor& x, const Tensor&, const Tensor&,
                          const OptionalTensor& weight, c10::SymInt batch, c10::SymInt channels,
                          c10::SymInt, std::int64_t, std::array<bool, 3> needed) {
  Three out;
  if (needed[0]) std::get<0>(out) = at::empty_like(x);
  if (needed[1]) std::get<1>(out) = at::empty_like(*weight);
  if (needed[2]) std::get<2>(out) = at::empty_like(*weight);
  const at::DimVector shape{batch.expect_int(), channels.expect_int()};
  const Tensor scale = at::empty(shape, wide(x)), shift = at::empty(shape, wide(x));
  return out;
}

}  // namespace

void register_norm_kernels(torch::Library& meta) {
  add_if_missing(meta, "native_layer_norm", TORCH_FN(layer_norm));
  add_if_missing(meta, "native_layer_norm_backward", TORCH_FN(layer_norm_backward));
  add_if_missing(meta, "_fused_rms_norm", TORCH_FN(fused_rms_norm));
  add_if_missing(meta, "_fused_rms_norm_backward", TORCH_FN(fused_rms_norm_backward));
  add_if_missing(meta, "native_batch_norm", TORCH_FN(batch_norm));
  add_if_missing(meta, "native_batch_norm_backward", TORCH_FN(batch_norm_backward));
  add_if_missing(meta, "native_group_norm", TORCH_FN(group_norm));
  add_if_missing(meta, "native_group_norm_backward", TORCH_FN(group_norm_backward));
}

}  // namespace plimsoll::engine::dry
