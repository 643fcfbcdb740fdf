// The version of the program, from CMake's project().
#pragma once

#include <string_view>

namespace plimsoll::cli {

std::string_view version();

}  // namespace plimsoll::cli
