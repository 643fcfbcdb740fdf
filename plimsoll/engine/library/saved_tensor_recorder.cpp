#include "plimsoll/engine/library/saved_tensor_recorder.hpp"

#include <torch/csrc/autograd/saved_variable_hooks.h>

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
    saved.parameter = parameter_storages_.contains(saved.storage);
  }
  tensors_.push_back(std::move(saved));
}

SavedTotals SavedTensorRecorder::totals(bool with_parameters) const {
  SavedTotals totals;
  std::unordered_set<const void*> seen;
  for (const SavedTensor& saved : tensors_) {
    if (saved.parameter && !with_parameters) continue;
    ++totals.tensors;
    totals.bytes += saved.bytes;
    if (saved.storage == nullptr || !seen.insert(saved.storage).second) continue;
    ++totals.storages;
    totals.kept_bytes += saved.storage_bytes;
  }
  return totals;
}

}  // namespace plimsoll::engine
