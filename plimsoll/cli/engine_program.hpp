// Two programs, one command line: `plimsoll` plans and starts in milliseconds; what needs libtorch,
// whose libraries alone take a quarter of a second to load, runs in `plimsoll-engine` beside it.
#pragma once

#include <string>
#include <vector>

namespace plimsoll::cli {

// Whether the command needs the engine, or has more to say with it.
bool wants_engine(const std::vector<std::string>& arguments);

// Replaces this process by the engine program with the same arguments. Returns only when there is
// none beside this program (a build without libtorch), or when libtorch could not load here.
void become_engine_program(char** argv);

}  // namespace plimsoll::cli
