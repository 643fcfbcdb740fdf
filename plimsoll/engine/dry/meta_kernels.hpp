// Kernels for the meta device where libtorch has none, or only a composition that allocates other
// blocks than the CPU kernel does. Each allocates what the CPU kernel allocates, in its order, and
// drops it when that does. A kernel that libtorch itself brings is left alone.
//
// They encode what libtorch 2.13 was seen to do (tests/engine/dry_test.cpp compares them with the
// CPU, event by event); for CUDA kernels what was published or documented.
#pragma once

#include <string>

#include <ATen/OpMathType.h>
#include <torch/library.h>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine::dry {

// Registers all kernels below; `meta` is a library for the key Meta.
void register_meta_kernels(torch::Library& meta);

void register_elementwise_kernels(torch::Library& meta);
void register_reduction_kernels(torch::Library& meta);
void register_index_kernels(torch::Library& meta);
void register_norm_kernels(torch::Library& meta);
void register_image_kernels(torch::Library& meta);
void register_attention_kernels(torch::Library& meta);
void register_optimizer_kernels(torch::Library& meta);

// Operations that libtorch composes differently for each device, and that ask the tensor's device
// for it: the mode decides by its flavour. `mode` is a library for the mode's key.
void register_composites(torch::Library& mode);

// Whether libtorch has no kernel of its own for meta; `name` as in "where.self".
bool is_missing_on_meta(const std::string& name);

// What a kernel makes of its own beside x: in the type that it computes in.
inline at::TensorOptions wide(const at::Tensor& x) {
  return x.options().dtype(at::toOpMathType(x.scalar_type()));
}

template <class Kernel>
void add_if_missing(torch::Library& meta, const char* name, Kernel kernel) {
  if (is_missing_on_meta(name)) meta.impl(name, kernel);
}

}  // namespace plimsoll::engine::dry
