// Views and copies: view, reshape, transpose, slice, split, cat, expand, unsqueeze.
#pragma once

#include <span>

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

Tensor view(Autograd& a, const Tensor& t, const Dims& wanted);  // -1 allowed once
Tensor transpose(Autograd& a, const Tensor& t, std::size_t d0, std::size_t d1);
Tensor unsqueeze(Autograd& a, const Tensor& t, std::size_t dim);
Tensor slice(Autograd& a, const Tensor& t, std::size_t dim, std::int64_t start, std::int64_t stop);
// Equal parts of `size` along `dim`.
Few<Tensor, kFewEdges> split(Autograd& a, const Tensor& t, std::int64_t size, std::size_t dim);
Tensor cat(Autograd& a, std::span<const Tensor> parts, std::size_t dim);
Tensor expand(Autograd& a, const Tensor& t, const Dims& shape);
Tensor clone(Autograd& a, const Tensor& t);       // contiguous copy
Tensor contiguous(Autograd& a, const Tensor& t);  // t itself when it is already
// A tracked view when strides allow it, else clone and _unsafe_view (two nodes).
Tensor reshape(Autograd& a, const Tensor& t, const Dims& wanted);
Tensor unsafe_view(Autograd& a, const Tensor& t, const Dims& shape);

}  // namespace plimsoll::network::rules
