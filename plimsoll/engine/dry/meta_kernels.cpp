#include "plimsoll/engine/dry/meta_kernels.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

namespace plimsoll::engine::dry {

void register_meta_kernels(torch::Library& meta) {
  register_elementwise_kernels(meta);
  register_reduction_kernels(meta);
  register_index_kernels(meta);
  register_norm_kernels(meta);
  register_image_kernels(meta);
  register_attention_kernels(meta);
  register_optimizer_kernels(meta);
}

bool is_missing_on_meta(const std::string& name) {
  const std::size_t dot = name.find('.');
  const c10::OperatorName operation("aten::" + name.substr(0, dot),
                                    dot == std::string::npos ? "" : name.substr(dot + 1));
  const auto found = c10::Dispatcher::singleton().findSchema(operation);
  return found && !found->hasKernelForDispatchKey(c10::DispatchKey::Meta);
}

}  // namespace plimsoll::engine::dry
