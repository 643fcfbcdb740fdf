// Parts of a tensor by index, and neighbours interleaved: select, every second, stack, index.
#pragma once

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::network::rules {

// One slice along `dim`, which disappears: a view. Which one makes no difference.
Tensor select(Autograd& a, const Tensor& t, std::size_t dim);

// Elements first, first + 2, ... of the last dimension: a view.
Tensor every_second(Autograd& a, const Tensor& t, std::int64_t first);

// x and y of one shape side by side in a new last dimension of size 2.
Tensor stack_last(Autograd& a, const Tensor& x, const Tensor& y);

// t[..., [index], ...] with a list of one index: a copy; the graph keeps the list.
Tensor pick_one(Autograd& a, const Tensor& t, std::size_t dim);

}  // namespace plimsoll::network::rules
