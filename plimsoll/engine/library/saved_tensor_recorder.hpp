// What a forward pass saves for backward, tensor by tensor.
//
// Counts tensors as autograd saves them: a storage that two operations save is listed twice, with
// the same `storage`. A saved view keeps all of its storage alive. One list describes one process.
// Not counted: numbers and shapes that nodes keep, tensors saved outside the scope.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "plimsoll/engine/library/operation_names.hpp"
#include "plimsoll/engine/library/saved_tensor_hooks.hpp"
#include "plimsoll/plan/ledger.hpp"

namespace plimsoll::engine {

struct SavedTensor {
  std::string operation;  // "aten::layer_norm"
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  at::ScalarType dtype = at::kFloat;
  std::int64_t bytes = 0;          // elements * item size
  std::int64_t storage_bytes = 0;  // of the whole storage
  const void* storage = nullptr;   // identity; unique among storages alive at the same time
  timeline::Tag tag = timeline::Tag::kActivations;  // of the storage
};

// Storages of `parameters` count as Tag::kParameters, others as what they are tagged.
// Use: SavedTensorRecorder recorder(module->parameters()); { SavedTensorScope scope(&recorder);
// loss = forward(); }. Backward then works as usual, and still notices edits in place.
class SavedTensorRecorder final : public SavedTensorHandler {
 public:
  explicit SavedTensorRecorder(std::span<const at::Tensor> parameters = {});
  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override;

  // In the order in which they were saved.
  const std::vector<SavedTensor>& tensors() const { return tensors_; }
  // The four counting conventions of plan/ledger.hpp over them.
  plan::Ledger ledger() const;

 private:
  class Hook;
  void record(const at::Tensor& tensor);

  OperationWatch watch_;
  std::unordered_set<const void*> parameter_storages_;
  std::vector<SavedTensor> tensors_;
};

}  // namespace plimsoll::engine
