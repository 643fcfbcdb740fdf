#include "plimsoll/engine/dry/meta_mode.hpp"

#include <algorithm>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "plimsoll/engine/dry/flavour.hpp"
#include "plimsoll/engine/dry/kernel_temporaries.hpp"
#include "plimsoll/engine/dry/meta_kernels.hpp"
#include "plimsoll/engine/dry/rewrites.hpp"

namespace plimsoll::engine {
namespace {

using dry::kModeKey;  // [Note: Mode key]

constinit thread_local Flavour flavour_of_thread = Flavour::kCpu;

// Calls `visit` with every tensor of an argument, and puts back what it changed.
template <class Visit>
void visit_tensors(c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    at::Tensor tensor = value.toTensor();
    if (visit(tensor)) value = std::move(tensor);
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> list = value.toTensorList();
    for (std::size_t index = 0; index < list.size(); ++index) {
      at::Tensor tensor = list.get(index);
      if (visit(tensor)) list.set(index, std::move(tensor));
    }
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list = value.toOptionalTensorList();
    for (std::size_t index = 0; index < list.size(); ++index) {
      at::Tensor tensor = list.get(index).value_or(at::Tensor());
      if (visit(tensor)) list.set(index, std::move(tensor));
    }
  }
}

bool has_tensors(const c10::IValue& value) {
  return value.isTensor() || value.isTensorList() || value.isOptionalTensorList();
}

// Points a factory without a device to meta. Operations with a tensor follow that tensor, and
// libtorch's own operations mean the CPU when they name no device.
void redirect_factory(const c10::FunctionSchema& schema, torch::jit::Stack& stack) {
  if (!is_called_by_user_code()) return;
  const std::size_t first = stack.size() - schema.arguments().size();
  for (std::size_t index = 0; index < schema.arguments().size(); ++index) {
    c10::IValue& value = stack[first + index];
    if (has_tensors(value)) return;
    if (schema.arguments()[index].name() == "device" && value.isNone()) {
      value = c10::Device(c10::kMeta);
    }
  }
}

bool is_constant(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.dim() > 0 && !tensor.requires_grad();
}

// A meta tensor of the same form that keeps the constant alive and has no block of its own.
at::Tensor meta_twin(const at::Tensor& constant) {
  const auto release = [](void* context) { delete static_cast<at::Tensor*>(context); };
  at::DataPtr data(nullptr, new at::Tensor(constant), release, at::kMeta);
  c10::Storage storage(c10::Storage::use_byte_size_t(), constant.storage().nbytes(),
                       std::move(data), nullptr, /*resizable=*/false);
  at::Tensor twin = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::Meta), constant.dtype());
  twin.unsafeGetTensorImpl()->set_sizes_and_strides(constant.sizes(), constant.strides(),
                                                    constant.storage_offset());
  return twin;
}

// Replaces CPU constants when the operation also has a meta tensor.
void replace_constants(const c10::FunctionSchema& schema, torch::jit::Stack& stack) {
  const auto first = stack.end() - static_cast<std::ptrdiff_t>(schema.arguments().size());
  const auto each_tensor = [&](auto&& visit) {
    std::for_each(first, stack.end(), [&](c10::IValue& value) { visit_tensors(value, visit); });
  };
  bool meta = false, constant = false;
  each_tensor([&](const at::Tensor& tensor) {
    meta = meta || (tensor.defined() && tensor.is_meta());
    constant = constant || is_constant(tensor);
    return false;
  });
  if (!meta || !constant) return;
  each_tensor([](at::Tensor& tensor) {
    if (!is_constant(tensor)) return false;
    tensor = meta_twin(tensor);
    return true;
  });
}

void run_operation(const c10::OperatorHandle& operation, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  redirect_factory(operation.schema(), *stack);
  replace_constants(operation.schema(), *stack);
  if (dry::rewrite(operation, *stack)) return;
  const dry::KernelTemporaries temporaries(operation, *stack);
  operation.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kModeKey),
                            stack);
  temporaries.after(*stack);
}

void install_once() {
  static const auto libraries = [] {
    using torch::Library;
    const auto make = [](const char* space, c10::DispatchKey key) {
      return std::make_unique<Library>(Library::IMPL, space, key, __FILE__, __LINE__);
    };
    auto mode = make("_", kModeKey);
    mode->fallback(torch::CppFunction::makeFromBoxedFunction<&run_operation>());
    auto meta = make("aten", c10::DispatchKey::Meta);
    dry::register_meta_kernels(*meta);
    auto composites = make("aten", kModeKey);
    dry::register_composites(*composites);
    // Registrations last as long as these; never destroyed, as libtorch's own.
    return new std::array{std::move(mode), std::move(meta), std::move(composites)};
  }();
  static_cast<void>(libraries);
}

Flavour installed(Flavour flavour) {
  install_once();
  return flavour;
}

}  // namespace

Flavour dry::current_flavour() { return flavour_of_thread; }

MetaMode::MetaMode(Flavour flavour)
    : previous_(std::exchange(flavour_of_thread, installed(flavour))),
      unseen_(flavour == Flavour::kCuda ? Unseen::kCpu : Unseen::kNothing),
      include_(kModeKey) {}

MetaMode::~MetaMode() { flavour_of_thread = previous_; }

}  // namespace plimsoll::engine
