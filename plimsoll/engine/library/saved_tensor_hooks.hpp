// Decides what happens when autograd saves a tensor for backward: keep it as usual, record it, or
// replace it by something smaller.
//
// libtorch offers this to C++ only through a subclass of its engine. The subclass is installed by
// the first scope and stays.
//
// [Note: Version check]
// With hooks autograd no longer notices when a saved tensor is edited in place, and computes a
// wrong gradient silently. A handler must check the version itself: KeptTensor does.
// [Note: Packing cycle]
// A saved output belongs to the node that saves it. A hook that keeps the tensor itself keeps the
// node alive for ever; it must keep `tensor.detach()`, which shares storage and version.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine {

// Makes one hook object per saved tensor. Called on the thread of the scope; the hooks live in the
// graph and may outlive the handler.
class SavedTensorHandler {
 public:
  virtual ~SavedTensorHandler() = default;
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> make() = 0;
};

// While it lives, tensors that this thread's operations save go through `handler` (null: as usual,
// even inside another scope). Scopes nest; the innermost one counts. `handler` must outlive it.
class SavedTensorScope {
 public:
  explicit SavedTensorScope(SavedTensorHandler* handler);
  ~SavedTensorScope();
  SavedTensorScope(const SavedTensorScope&) = delete;
  SavedTensorScope& operator=(const SavedTensorScope&) = delete;

 private:
  SavedTensorHandler* previous_;
};

// A saved tensor together with autograd's own check.
class KeptTensor {
 public:
  KeptTensor() = default;
  // `operation` is the one that saves it.
  KeptTensor(const at::Tensor& tensor, std::string operation);

  // The tensor as it was saved. Throws c10::Error, with the text autograd itself would use and the
  // operation, when it was edited in place since.
  at::Tensor get() const;

 private:
  at::Tensor tensor_;
  std::string operation_;
  std::uint32_t version_ = 0;
};

}  // namespace plimsoll::engine
