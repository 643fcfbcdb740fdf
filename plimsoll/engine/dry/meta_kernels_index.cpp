// Rows by number: embedding and its gradient.
#include "plimsoll/engine/dry/meta_kernels.hpp"

namespace plimsoll::engine::dry {
namespace {

at::Tensor index_select(const at::Tensor& table, std::int64_t dim, const at::Tensor& index) {
  std::vector<std::int64_t> shape = table.sizes().vec();
  if (!shape.empty())
    shape[static_cast<std::size_t>(at::maybe_wrap_dim(dim, table.dim()))] = index.numel();
  return at::empty(shape, table.options());
}

at::Tensor embedding_dense_backward(const at::Tensor& gradient, const at::Tensor& indices,
                                    c10::SymInt rows, c10::SymInt, bool) {
  const at::Tensor ids = indices.contiguous();
  at::Tensor table = at::zeros({rows.expect_int(), gradient.size(-1)}, gradient.options());
  const at::Tensor copy = gradient.contiguous();
  return table;
}

}  // namespace

void register_index_kernels(torch::Library& meta) {
  add_if_missing(meta, "index_select", TORCH_FN(index_select));
  add_if_missing(meta, "embedding_dense_backward", TORCH_FN(embedding_dense_backward));
}

}  // namespace plimsoll::engine::dry
