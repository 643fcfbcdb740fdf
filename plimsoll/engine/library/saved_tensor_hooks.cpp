#include "plimsoll/engine/library/saved_tensor_hooks.hpp"

#include <utility>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

namespace plimsoll::engine {
namespace {

constinit thread_local SavedTensorHandler* current_handler = nullptr;

class HookingEngine final : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return current_handler == nullptr ? nullptr : current_handler->make();
  }
};

torch::autograd::Engine& hooking_engine() {
  // Never destroyed, as libtorch's own: its threads may still run when the process ends.
  static auto* engine = new HookingEngine;
  return *engine;
}

void install_engine_once() {
  static const bool once = [] {
    torch::autograd::set_default_engine_stub(&hooking_engine);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

SavedTensorScope::SavedTensorScope(SavedTensorHandler* handler)
    : previous_(std::exchange(current_handler, handler)) {
  install_engine_once();
}

SavedTensorScope::~SavedTensorScope() { current_handler = previous_; }

KeptTensor::KeptTensor(const at::Tensor& tensor, std::string operation)
    : tensor_(tensor.detach()),
      operation_(std::move(operation)),
      version_(static_cast<std::uint32_t>(tensor._version())) {}

at::Tensor KeptTensor::get() const {
  const auto version = static_cast<std::uint32_t>(tensor_._version());
  TORCH_CHECK(version == version_,
              "one of the variables needed for gradient computation has been modified by an "
              "inplace operation: [",
              tensor_.toString(), " ", tensor_.sizes(), "], saved by ", operation_,
              ", is at version ", version, "; expected version ", version_,
              " instead. Hint: edit a copy of it (clone), or edit it before it is used");
  return tensor_;
}

}  // namespace plimsoll::engine
