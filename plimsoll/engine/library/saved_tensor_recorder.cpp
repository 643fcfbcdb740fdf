#include "plimsoll/engine/library/saved_tensor_recorder.hpp"

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include "plimsoll/engine/library/allocators.hpp"

namespace plimsoll::engine {
namespace {

const void* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace

class SavedTensorRecorder::Hook final : public torch::autograd::SavedVariableHooks {
 public:
  explicit Hook(SavedTensorRecorder& recorder) : recorder_(&recorder) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    kept_ = KeptTensor(tensor, std::string(outermost_operation()));
    recorder_->record(tensor);
  }
  at::Tensor call_unpack_hook() override { return kept_.get(); }

 private:
  SavedTensorRecorder* recorder_;  // only used while packing, when its scope is open
  KeptTensor kept_;
};

SavedTensorRecorder::SavedTensorRecorder(std::span<const at::Tensor> parameters) {
  for (const at::Tensor& parameter : parameters) parameter_storages_.insert(storage_of(parameter));
}

std::unique_ptr<torch::autograd::SavedVariableHooks> SavedTensorRecorder::make() {
  return std::make_unique<Hook>(*this);
}

void SavedTensorRecorder::record(const at::Tensor& tensor) {
  SavedTensor saved;
  saved.operation = outermost_operation();
  saved.shape = tensor.sizes().vec();
  if (tensor.layout() == at::kStrided) saved.strides = tensor.strides().vec();
  saved.dtype = tensor.scalar_type();
  saved.bytes = static_cast<std::int64_t>(tensor.nbytes());
  saved.storage = storage_of(tensor);
  if (saved.storage != nullptr) {
    saved.storage_bytes = static_cast<std::int64_t>(tensor.storage().nbytes());
    if (const Block* block = block_of(tensor)) saved.tag = block->tag;
    if (parameter_storages_.contains(saved.storage)) saved.tag = timeline::Tag::kParameters;
  }
  tensors_.push_back(std::move(saved));
}

plan::Ledger SavedTensorRecorder::ledger() const {
  plan::LedgerCounter counter;
  for (const SavedTensor& saved : tensors_) {
    const bool empty = saved.storage == nullptr || saved.storage_bytes == 0;
    const auto identity = reinterpret_cast<std::uintptr_t>(saved.storage);
    counter.add(saved.bytes, saved.storage_bytes, empty ? 0 : identity, saved.tag);
  }
  return counter.ledger();
}

}  // namespace plimsoll::engine
