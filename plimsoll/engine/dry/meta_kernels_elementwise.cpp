// relu, where.
#include <ATen/TensorIterator.h>

#include "plimsoll/engine/dry/meta_kernels.hpp"

namespace plimsoll::engine::dry {
namespace {

at::Tensor relu(const at::Tensor& x) { return at::empty_like(x); }

// Operands of another dtype are cast first, and the casts live until the result exists.
at::Tensor& where_out(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other,
                      at::Tensor& out) {
  const at::ScalarType dtype = at::result_type(self, other);
  const at::Tensor self_cast = self.to(dtype), other_cast = other.to(dtype);
  at::TensorIteratorConfig()
      .check_all_same_dtype(false)
      .add_output(out)
      .add_const_input(condition)
      .add_const_input(self_cast)
      .add_const_input(other_cast)
      .build();
  return out;
}

at::Tensor where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  at::Tensor out =
      at::empty({0}, self.options().dtype(at::result_type(self, other)).device(at::kMeta));
  return where_out(condition, self, other, out);
}

}  // namespace

void register_elementwise_kernels(torch::Library& meta) {
  add_if_missing(meta, "relu", TORCH_FN(relu));
  add_if_missing(meta, "where.self", TORCH_FN(where));
  add_if_missing(meta, "where.self_out", TORCH_FN(where_out));
}

}  // namespace plimsoll::engine::dry
