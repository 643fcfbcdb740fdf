#include "plimsoll/engine/dry/product_copies.hpp"

#include <algorithm>

#include <ATen/EmptyTensor.h>

namespace plimsoll::engine::dry {
namespace {

// Contiguous rows or columns that are at least as far apart as they are long. A dimension of size 1
// with a foreign stride fails that.
bool is_readable(const at::Tensor& matrix) {
  const std::int64_t rows = std::max<std::int64_t>(1, matrix.size(0));
  const std::int64_t columns = std::max<std::int64_t>(1, matrix.size(1));
  return (matrix.stride(0) == 1 && matrix.stride(1) >= rows) ||
         (matrix.stride(1) == 1 && matrix.stride(0) >= columns);
}

// What MKL's batched product asks of its operands. Dimensions of size 1 may have any stride.
bool is_readable_batch(const at::Tensor& batch) {
  const std::int64_t rows = batch.size(1), columns = batch.size(2);
  return (batch.stride(2) == 1 && (rows == 1 || batch.stride(1) >= columns)) ||
         (batch.stride(1) == 1 && (columns == 1 || batch.stride(2) >= rows));
}

at::Tensor copy_if_unreadable(const at::Tensor& matrix) {
  if (is_readable(matrix)) return {};
  return at::detail::empty_meta(matrix.sizes(), matrix.scalar_type());
}

}  // namespace

void copy_operands(const at::Tensor& x, const at::Tensor& y, const at::Tensor& result) {
  if (result.numel() == 0) return;
  // A result by rows is computed as (y^T x^T)^T, so y is looked at first.
  const bool by_columns = result.stride(0) == 1 && result.size(1) == 1;
  const at::Tensor first = copy_if_unreadable(by_columns ? x : y);
  const at::Tensor second = copy_if_unreadable(by_columns ? y : x);
}

void copy_batched_operands(const at::Tensor& x, const at::Tensor& y, const at::Tensor& result) {
  constexpr std::int64_t small_product = 400;  // below, a plain loop reads any strides
  if (result.numel() == 0 || x.size(1) * x.size(2) * y.size(2) < small_product) return;
  const bool for_mkl = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  if (for_mkl && is_readable_batch(x) && is_readable_batch(y)) return;
  for (std::int64_t batch = 0; batch < x.size(0); ++batch) {
    copy_operands(x.select(0, batch), y.select(0, batch), result.select(0, batch));
  }
}

}  // namespace plimsoll::engine::dry
