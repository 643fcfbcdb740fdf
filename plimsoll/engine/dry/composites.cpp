// Operations that libtorch composes differently for each device, and for which it asks the tensor's
// device: attention's choice of a kernel, dropout, RMS norm.
#include <limits>

#include <ATen/ops/_fused_rms_norm_compositeimplicitautograd_dispatch.h>
#include <ATen/ops/dropout_compositeimplicitautograd_dispatch.h>

#include "plimsoll/engine/dry/flavour.hpp"
#include "plimsoll/engine/dry/meta_kernels.hpp"
#include "plimsoll/engine/library/attention_choice.hpp"

namespace plimsoll::engine::dry {
namespace {

using at::SDPBackend;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// What the CUDA build of libtorch takes on recent cards: flash for 16-bit without a mask,
// memory-efficient otherwise, products for fp64 and where the heads are grouped beside a mask or
// fp32. An assumption: it depends on the card and on switches.
SDPBackend cuda_attention_choice(const AttentionArguments& of) {
  constexpr std::int64_t largest_flash_head = 256;
  const bool narrow = of.q.element_size() == 2;
  const bool masked = of.mask.has_value() && of.mask->defined();
  if (narrow && !masked && of.q.size(-1) <= largest_flash_head) return SDPBackend::flash_attention;
  if (of.q.scalar_type() == at::kDouble || of.grouped) return SDPBackend::math;
  return SDPBackend::efficient_attention;
}

// A bool mask becomes 0 where true and -inf where false.
OptionalTensor added_mask(const OptionalTensor& mask, at::ScalarType dtype) {
  if (!mask.has_value() || mask->scalar_type() != at::kBool) return mask;
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  return at::where(*mask, 0.0, at::scalar_tensor(hidden, mask->options().dtype(dtype)));
}

bool needs_gradient(const AttentionArguments& of) {
  return at::GradMode::is_enabled() &&
         (of.q.requires_grad() || of.k.requires_grad() || of.v.requires_grad());
}

Tensor cpu_attention(const AttentionArguments& of, const OptionalTensor& mask) {
  if (cpu_attention_choice(of) == SDPBackend::flash_attention) {
    return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(of.q, of.k, of.v, of.dropout,
                                                                       of.causal, mask, of.scale));
  }
  return std::get<0>(at::_scaled_dot_product_attention_math(of.q, of.k, of.v, mask, of.dropout,
                                                            of.causal, {}, of.scale, of.grouped));
}

Tensor cuda_attention(const AttentionArguments& of, const OptionalTensor& mask) {
  switch (cuda_attention_choice(of)) {
    case SDPBackend::flash_attention:
      return std::get<0>(at::_scaled_dot_product_flash_attention(of.q, of.k, of.v, of.dropout,
                                                                 of.causal, false, of.scale));
    case SDPBackend::efficient_attention:
      return std::get<0>(at::_scaled_dot_product_efficient_attention(
          of.q, of.k, of.v, mask, needs_gradient(of), of.dropout, of.causal, of.scale));
    default:
      return std::get<0>(at::_scaled_dot_product_attention_math(
          of.q, of.k, of.v, mask, of.dropout, of.causal, {}, of.scale, of.grouped));
  }
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor& mask,
                 double dropout, bool causal, std::optional<double> scale, bool grouped) {
  const AttentionArguments of{q, k, v, mask, dropout, causal, scale, grouped};
  const OptionalTensor added = added_mask(mask, q.scalar_type());
  return current_flavour() == Flavour::kCuda ? cuda_attention(of, added) : cpu_attention(of, added);
}

// One kernel on CUDA, several operations on the CPU.
std::tuple<Tensor, Tensor> rms_norm(const Tensor& x, at::IntArrayRef normalized,
                                    const OptionalTensor& weight, std::optional<double> eps) {
  if (current_flavour() == Flavour::kCpu) {
    return at::compositeimplicitautograd::_fused_rms_norm(x, normalized, weight, eps);
  }
  const c10::impl::ExcludeDispatchKeyGuard without_mode(kModeKey);
  return at::_fused_rms_norm(x, normalized, weight, eps);
}

// CUDA keeps a bool mask, the CPU multiplies by one of x's dtype.
Tensor dropout(const Tensor& x, double p, bool train) {
  if (current_flavour() == Flavour::kCpu) {
    return at::compositeimplicitautograd::dropout(x, p, train);
  }
  return p > 0 && train ? std::get<0>(at::native_dropout(x, p, true)) : x;
}

}  // namespace

void register_composites(torch::Library& mode) {
  mode.impl("_fused_rms_norm", TORCH_FN(rms_norm));
  mode.impl("dropout", TORCH_FN(dropout));
  mode.impl("scaled_dot_product_attention", TORCH_FN(attention));
}

}  // namespace plimsoll::engine::dry
