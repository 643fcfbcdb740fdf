// The mode in which a training step runs on the meta device and leaves the events of a real one.
//
// While a MetaMode lives on a thread:
//   * factories without a device (torch::empty, torch::arange, parameters of torch::nn modules)
//     make meta tensors: a module of any size is built without memory;
//   * CPU tensors that meet meta tensors in an operation (constants made by torch::tensor) are
//     replaced by meta tensors for that operation;
//   * operations that libtorch cannot run on meta have kernels (meta_kernels.hpp);
//   * what CPU kernels allocate and drop, beyond their results, is allocated and dropped too:
//     scratch, casts of operands, numbers. With Flavour::kCuda the kernels of a GPU are taken
//     instead, and blocks on the CPU are not counted.
//
// Which operations leave exactly the CPU's events is what tests/engine/operation_cases.cpp lists;
// others run if libtorch knows them on meta, with results counted and scratch perhaps not. Scratch
// depends on at::get_num_threads() as on the CPU. Not reproduced: values (nothing can be read from
// a meta tensor), autocast, and the scratch of oneDNN's 16-bit products on CPUs with AVX512-BF16
// or AMX [Note: Reference kernels].
#pragma once

#include <optional>
#include <utility>

#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/engine/library/operation_names.hpp"
#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine {

// Whose kernels a dry run stands for.
enum class Flavour {
  kCpu,   // libtorch's CPU kernels: event by event what a Meter sees there
  kCuda,  // saved tensors and results of CUDA kernels; their workspaces are not known
};

// Nests; other threads are not affected. Backward must begin inside the mode, too.
class MetaMode {
 public:
  explicit MetaMode(Flavour flavour = Flavour::kCpu);
  ~MetaMode();
  MetaMode(const MetaMode&) = delete;
  MetaMode& operator=(const MetaMode&) = delete;

 private:
  Flavour previous_;
  UnseenScope unseen_;
  OperationWatch watch_;
  c10::impl::IncludeDispatchKeyGuard include_;
};

// Runs `function` in the mode and returns its result:
//   auto model = on_meta([] { return Llama(shape); });
template <class Function>
auto on_meta(Function&& function) {
  const MetaMode mode;
  return std::forward<Function>(function)();
}

}  // namespace plimsoll::engine
