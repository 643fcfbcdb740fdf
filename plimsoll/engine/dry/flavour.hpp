// The flavour of this thread's innermost MetaMode.
#pragma once

#include "plimsoll/engine/dry/meta_mode.hpp"

namespace plimsoll::engine::dry {

Flavour current_flavour();

}  // namespace plimsoll::engine::dry
