// Every byte of the ranks' files against the manifest.
#pragma once

#include "plimsoll/checkpoint/verify.hpp"

namespace plimsoll::checkpoint {

// Appends to the findings of a verification that has a manifest. Files that are missing have been found
// before and are passed over.
void verify_contents(Verification& verification);

}  // namespace plimsoll::checkpoint
