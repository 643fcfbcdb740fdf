#include "plimsoll/engine/zero/blocks.hpp"

#include <memory>
#include <stdexcept>
#include <string>

#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/engine/library/parameter_storage.hpp"

namespace plimsoll::engine::zero {

using timeline::Tag;

at::DataPtr shared_block(comm::Communicator& world, at::Device device, std::int64_t bytes,
                         Tag tag) {
  const TagScope scope(tag);
  if (device.is_meta()) {
    return c10::GetAllocator(c10::DeviceType::Meta)->allocate(static_cast<std::size_t>(bytes));
  }
  const auto buffer = std::make_shared<comm::Buffer>(world.allocate(bytes));
  return outside_block(std::shared_ptr<std::byte>(buffer, buffer->data()), bytes);
}

at::Tensor shared_elements(comm::Communicator& world, at::Device device, std::int64_t count,
                           at::ScalarType type, Tag tag) {
  if (count == 0) return {};
  const std::int64_t bytes = count * static_cast<std::int64_t>(c10::elementSize(type));
  const at::Storage storage = make_storage(shared_block(world, device, bytes, tag), bytes);
  return tensor_in(storage, 0, {count}, type);
}

at::Tensor own_elements(at::Device device, std::int64_t count, at::ScalarType type, Tag tag) {
  if (count == 0) return {};
  const TagScope scope(tag);
  return at::empty({count}, at::TensorOptions().dtype(type).device(device));
}

at::Tensor own_zeros(at::Device device, std::int64_t count, at::ScalarType type, Tag tag) {
  if (count == 0) return {};
  const TagScope scope(tag);
  return at::zeros({count}, at::TensorOptions().dtype(type).device(device));
}

comm::DType wire_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return comm::DType::kFloat32;
    case at::kDouble:
      return comm::DType::kFloat64;
    case at::kBFloat16:
      return comm::DType::kBFloat16;
    case at::kHalf:
      return comm::DType::kFloat16;
    case at::kLong:
      return comm::DType::kInt64;
    case at::kByte:
    case at::kBool:
      return comm::DType::kUInt8;
    default:
      throw std::invalid_argument(std::string("[zero] tensors of type ") + c10::toString(type) +
                                  " cannot be exchanged between ranks, expected a floating type");
  }
}

comm::View view_of(const at::Tensor& tensor) {
  void* data = tensor.is_meta() ? nullptr : tensor.mutable_data_ptr();
  return {data, tensor.numel(), wire_type(tensor.scalar_type())};
}

void copy_elements(const at::Tensor& to, const at::Tensor& from) {
  if (to.is_meta()) return;
  const at::NoGradGuard no_grad;
  to.copy_(from);
}

}  // namespace plimsoll::engine::zero
