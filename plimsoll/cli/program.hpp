// The program from its arguments to its exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/cli/command.hpp"

namespace plimsoll::cli {

// The output of a call, without printing it. Errors are the user's or the machine's.
Result<Output> dispatch(const std::vector<std::string>& arguments, const TextStyle& style);

// Runs `work` and turns what it throws into an Error: our bugs (70), sizes beyond 64 bits (2), a
// machine that is out of memory (3).
Result<Output> guarded(const std::function<Result<Output>()>& work);

// Prints the output to stdout or the error as one line to stderr; gives the exit code. A reader that
// closed its end of the pipe early is no error.
int run_program(const std::vector<std::string>& arguments);

}  // namespace plimsoll::cli
