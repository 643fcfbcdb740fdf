// Memory of a sharded run: where peers can read it, counted by meters, or a count alone in a dry run.
#pragma once

#include <cstdint>

#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/engine/torch.hpp"
#include "plimsoll/timeline/event.hpp"

namespace plimsoll::engine::zero {

// `bytes` > 0 bytes for `device` (kCPU, kMeta), tagged. On the CPU peers read it without a copy in
// between. Uninitialised.
at::DataPtr shared_block(comm::Communicator& world, at::Device device, std::int64_t bytes,
                         timeline::Tag tag);

// `count` elements in such a block, one after the other; undefined for 0 elements.
at::Tensor shared_elements(comm::Communicator& world, at::Device device, std::int64_t count,
                           at::ScalarType type, timeline::Tag tag);

// The same in this process's own memory, zero or uninitialised.
at::Tensor own_elements(at::Device device, std::int64_t count, at::ScalarType type,
                        timeline::Tag tag);
at::Tensor own_zeros(at::Device device, std::int64_t count, at::ScalarType type, timeline::Tag tag);

// std::invalid_argument for types that ranks do not exchange.
comm::DType wire_type(at::ScalarType type);
// A contiguous tensor as a view; of no address on the meta device.
comm::View view_of(const at::Tensor& tensor);

// Copies between tensors of equal size that may have different types; nothing on the meta device.
void copy_elements(const at::Tensor& to, const at::Tensor& from);

}  // namespace plimsoll::engine::zero
