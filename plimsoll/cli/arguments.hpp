// From the words of a call to a Given. The only file that knows CLI11.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/cli/command.hpp"

namespace plimsoll::cli {

// Errors: unknown options (with the nearest name), a missing or repeated value, a missing or second
// positional argument. `where` is the option or the command.
Result<Given> parse_arguments(const Syntax& syntax, const std::vector<std::string>& arguments);

}  // namespace plimsoll::cli
