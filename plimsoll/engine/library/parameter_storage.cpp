#include "plimsoll/engine/library/parameter_storage.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll::engine {

at::Storage make_storage(at::DataPtr memory, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  return at::Storage(at::Storage::use_byte_size_t(), size, std::move(memory), nullptr, false);
}

at::Tensor tensor_in(const at::Storage& storage, std::int64_t offset, at::IntArrayRef shape,
                     at::ScalarType type) {
  const auto item = static_cast<std::int64_t>(c10::elementSize(type));
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<std::int64_t>(shape[d], 1);
  }
  // Not Tensor::set_, which on the meta device wants to resize the storage.
  const auto key = storage.device().is_meta() ? c10::DispatchKey::Meta : c10::DispatchKey::CPU;
  const at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(shape, strides, offset / item);
  return tensor;
}

void place_parameter(const at::Tensor& parameter, const at::Storage& storage, std::int64_t offset,
                     at::ScalarType type) {
  const at::Tensor placed = tensor_in(storage, offset, parameter.sizes(), type);
  // Tensor::set_data would refuse to leave the meta device.
  parameter.unsafeGetTensorImpl()->shallow_copy_from(placed.getIntrusivePtr());
}

void free_storage(const at::Storage& storage, const std::string& message) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  // The number of bytes stays, so that shapes and views remain valid.
  impl->set_data_ptr_noswap(at::DataPtr(nullptr, impl->device()));
  impl->release_data_and_set_meta_custom_data_ptr_error_msg_(message);
}

void fill_storage(const at::Storage& storage, at::DataPtr memory) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  impl->set_data_ptr_noswap(std::move(memory));
  impl->clear_data_ptr_access_error_msg_();
}

}  // namespace plimsoll::engine
