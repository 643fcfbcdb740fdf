// What the parts of the dry run ask the innermost MetaMode of their thread.
#pragma once

#include "plimsoll/engine/dry/meta_mode.hpp"

namespace plimsoll::engine::dry {

// [Note: Mode key]
// libtorch dispatches an operation to the highest key that its tensors or the thread ask for. This
// key stands above autograd, no tensor carries it and libtorch registers nothing under it, so the
// mode sees every operation once, before autograd, and overrides no kernel.
inline constexpr c10::DispatchKey kModeKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

Flavour current_flavour();

}  // namespace plimsoll::engine::dry
