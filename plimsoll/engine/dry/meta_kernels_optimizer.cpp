// Fused optimizers: everything in place, no block of their own.
#include "plimsoll/engine/dry/meta_kernels.hpp"

namespace plimsoll::engine::dry {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

void fused_adam(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                at::TensorList, double, double, double, double, double, bool, bool,
                const OptionalTensor&, const OptionalTensor&) {}

void fused_sgd(at::TensorList, at::TensorList, at::TensorList, double, double, double, double, bool,
               bool, bool, const OptionalTensor&, const OptionalTensor&) {}

}  // namespace

void register_optimizer_kernels(torch::Library& meta) {
  add_if_missing(meta, "_fused_adam_", TORCH_FN(fused_adam));
  add_if_missing(meta, "_fused_adamw_", TORCH_FN(fused_adam));
  add_if_missing(meta, "_fused_sgd_", TORCH_FN(fused_sgd));
}

}  // namespace plimsoll::engine::dry
