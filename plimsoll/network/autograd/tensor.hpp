// Storages and tensors of the autograd model: sizes, strides and lifetimes without data.
//
// A storage is released when the last tensor over it dies; nothing else releases memory. A tensor is
// a view in one of two ways [Note: tracked and plain views]:
//   tracked: made by an operation (view, transpose, slice, ...). Holds its base, so that its storage
//            counts at least two tensors and a gradient in it is never added to in place.
//   plain:   made inside a kernel, by detach, or for a saved output. Holds only the storage.
#pragma once

#include <cstdint>

#include "plimsoll/network/autograd/ref.hpp"
#include "plimsoll/network/dims.hpp"
#include "plimsoll/network/dtype.hpp"
#include "plimsoll/timeline/event.hpp"

namespace plimsoll::network {

class Autograd;
struct Node;
struct TensorImpl;
void retain(TensorImpl* tensor);
void drop(TensorImpl* tensor);
void retain(Node* node);
void drop(Node* node);

struct Storage {
  Storage(std::int64_t size, timeline::BlockId id, timeline::Tag purpose)
      : bytes(size), block(id), tag(purpose) {}

  std::int64_t bytes;
  timeline::BlockId block;    // 0 for empty storages, which are no events
  std::uint32_t tensors = 0;  // tensors over it
  timeline::Tag tag;
  bool counted = true;  // false: outside the memory that the events are about
};

struct TensorImpl {
  TensorImpl(Autograd* engine, Storage* memory, const Dims& sizes, const Dims& steps, DType type)
      : owner(engine), storage(memory), shape(sizes), strides(steps), dtype(type) {}

  Autograd* owner;
  Storage* storage;
  std::uint32_t uses = 0;
  std::uint32_t output = 0;  // which output of `node`
  Dims shape;
  Dims strides;
  DType dtype;
  bool leaf = false;  // requires a gradient and was not computed
  Ref<TensorImpl> base;
  Ref<Node> node;               // what computed it
  Ref<TensorImpl> grad;         // of a leaf
  Node* accumulator = nullptr;  // of a leaf; not owned, the graph's edges own it
};

inline void retain(TensorImpl* tensor) { ++tensor->uses; }
void destroy(TensorImpl* tensor);
inline void drop(TensorImpl* tensor) {
  if (--tensor->uses == 0) destroy(tensor);
}

// A handle. Copying adds a use of the tensor, as holding it in a variable does.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorImpl* impl) : impl_(impl) {}

  explicit operator bool() const { return static_cast<bool>(impl_); }
  void reset() { impl_.reset(); }

  const Dims& shape() const { return impl_->shape; }
  const Dims& strides() const { return impl_->strides; }
  std::int64_t size(std::size_t dim) const { return impl_->shape[dim]; }
  std::size_t rank() const { return impl_->shape.size(); }
  DType dtype() const { return impl_->dtype; }
  Storage& storage() const { return *impl_->storage; }

  std::int64_t elements() const { return element_count(impl_->shape); }
  std::int64_t bytes() const { return checked_mul(elements(), size_of(impl_->dtype)); }
  bool contiguous() const { return is_contiguous(impl_->shape, impl_->strides); }
  bool dense() const { return is_dense(impl_->shape, impl_->strides); }

  bool needs_grad() const { return impl_->leaf || impl_->node; }
  bool only_use() const { return impl_->uses == 1; }

  TensorImpl* impl() const { return impl_.get(); }

 private:
  Ref<TensorImpl> impl_;
};

}  // namespace plimsoll::network
