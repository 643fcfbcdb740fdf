// Reductions and losses that libtorch cannot run on meta.
#include <ATen/WrapDimUtilsMulti.h>

#include "plimsoll/engine/dry/kernel_temporaries.hpp"
#include "plimsoll/engine/dry/meta_kernels.hpp"

namespace plimsoll::engine::dry {
namespace {

using at::Scalar;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

Tensor whole(const Tensor& x) { return at::empty({}, x.options()); }

Tensor whole_as(const Tensor& x, std::optional<at::ScalarType> dtype) {
  return at::empty({}, x.options().dtype(dtype.value_or(x.scalar_type())));
}

Tensor dot(const Tensor& a, const Tensor&) { return whole(a); }

Tensor reduced(const Tensor& x, at::OptionalIntArrayRef dims, bool keep) {
  std::vector<std::int64_t> shape;
  const auto mask = at::dim_list_to_bitset(dims, static_cast<std::size_t>(x.dim()));
  const bool all = !dims.has_value() || dims->empty();
  for (std::int64_t dim = 0; dim < x.dim(); ++dim) {
    const bool gone = all || mask[static_cast<std::size_t>(dim)];
    if (!gone) shape.push_back(x.size(dim));
    if (gone && keep) shape.push_back(1);
  }
  return at::empty(shape, x.options());
}

Tensor variance(const Tensor& x, at::OptionalIntArrayRef dims, const std::optional<Scalar>&,
                bool keep) {
  return reduced(x, dims, keep);
}

std::tuple<Tensor, Tensor> variance_and_mean(const Tensor& x, at::OptionalIntArrayRef dims,
                                             const std::optional<Scalar>&, bool keep) {
  return {reduced(x, dims, keep), reduced(x, dims, keep)};
}

Tensor mse_loss_backward(const Tensor&, const Tensor& x, const Tensor&, std::int64_t) {
  return at::zeros_like(x, at::MemoryFormat::Contiguous);
}

Tensor& smooth_l1_loss_backward_out(const Tensor&, const Tensor&, const Tensor&, std::int64_t,
                                    double, Tensor& out) {
  return out;
}

Tensor huber_loss(const Tensor& x, const Tensor& target, std::int64_t reduction, double) {
  const Tensor loss = at::empty(at::infer_size(x.sizes(), target.sizes()), x.options());
  if (reduction == at::Reduction::Mean) return loss.mean();
  return reduction == at::Reduction::Sum ? loss.sum() : loss;
}

// The loss keeps the storage in which it was computed element by element.
Tensor binary_cross_entropy(const Tensor& x, const Tensor&, const OptionalTensor&,
                            std::int64_t reduction) {
  Tensor loss = at::empty_like(x);
  if (reduction == at::Reduction::None) return loss;
  const Tensor reduced_loss = reduction == at::Reduction::Mean ? loss.mean() : loss.sum();
  return loss.resize_({});
}

Tensor binary_cross_entropy_backward(const Tensor&, const Tensor& x, const Tensor&,
                                     const OptionalTensor&, std::int64_t reduction) {
  Tensor out = at::empty_like(x);
  if (reduction == at::Reduction::Mean) out.div_(x.numel());
  return out;
}

std::tuple<Tensor, Tensor> nll_loss2d(const Tensor& x, const Tensor& target, const OptionalTensor&,
                                      std::int64_t reduction, c10::SymInt) {
  Tensor total_weight = whole(x);
  const bool unreduced = reduction == at::Reduction::None;
  Tensor loss = unreduced ? at::empty(target.sizes(), x.options()) : whole(x);
  return {std::move(loss), std::move(total_weight)};
}

Tensor nll_loss2d_backward(const Tensor&, const Tensor& x, const Tensor&, const OptionalTensor&,
                           std::int64_t, c10::SymInt, const Tensor&) {
  return at::zeros_like(x);
}

}  // namespace

void register_reduction_kernels(torch::Library& meta) {
  add_if_missing(meta, "max", TORCH_FN(whole));
  add_if_missing(meta, "min", TORCH_FN(whole));
  add_if_missing(meta, "prod", TORCH_FN(whole_as));
  add_if_missing(meta, "dot", TORCH_FN(dot));
  add_if_missing(meta, "var.correction", TORCH_FN(variance));
  add_if_missing(meta, "std.correction", TORCH_FN(variance));
  add_if_missing(meta, "var_mean.correction", TORCH_FN(variance_and_mean));
  add_if_missing(meta, "std_mean.correction", TORCH_FN(variance_and_mean));
  add_if_missing(meta, "mse_loss_backward", TORCH_FN(mse_loss_backward));
  add_if_missing(meta, "smooth_l1_loss_backward.grad_input", TORCH_FN(smooth_l1_loss_backward_out));
  add_if_missing(meta, "huber_loss", TORCH_FN(huber_loss));
  add_if_missing(meta, "huber_loss_backward.out", TORCH_FN(smooth_l1_loss_backward_out));
  add_if_missing(meta, "binary_cross_entropy", TORCH_FN(binary_cross_entropy));
  add_if_missing(meta, "binary_cross_entropy_backward", TORCH_FN(binary_cross_entropy_backward));
  add_if_missing(meta, "nll_loss2d_forward", TORCH_FN(nll_loss2d));
  add_if_missing(meta, "nll_loss2d_backward", TORCH_FN(nll_loss2d_backward));
}

}  // namespace plimsoll::engine::dry
