// The memory below registered parameters: taken away and given back while the tensors, and autograd's
// nodes for them, stay what they are.
//
// Parameters of one unit lie in one storage, so one call frees or fills them all. Their version does
// not change: what is filled in is what was there before.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine {

// A storage of `bytes` bytes with this memory, which is never resized.
at::Storage make_storage(at::DataPtr memory, std::int64_t bytes);

// A contiguous tensor over part of a storage; `offset` in bytes, a multiple of the element's size.
at::Tensor tensor_in(const at::Storage& storage, std::int64_t offset, at::IntArrayRef shape,
                     at::ScalarType type);

// Makes `parameter` a contiguous tensor of `type` at `offset` (bytes) of `storage`, also when it was on
// another device (meta); its identity, its version and whether it requires a gradient stay. Values are
// not copied. Before its first use by autograd: nodes that exist expect the old type.
void place_parameter(const at::Tensor& parameter, const at::Storage& storage, std::int64_t offset,
                     at::ScalarType type);

// Gives the memory back. Until it is filled again, reading any tensor over this storage throws
// `message`.
void free_storage(const at::Storage& storage, const std::string& message);
// Of the size that the storage had.
void fill_storage(const at::Storage& storage, at::DataPtr memory);

}  // namespace plimsoll::engine
