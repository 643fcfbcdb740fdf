// Help texts, written from the same tables that the parser reads.
#pragma once

#include <string>

#include "plimsoll/cli/command.hpp"

namespace plimsoll::cli {

// All commands, one line each.
std::string overview(const TextStyle& style);

// One command: its call, MODEL, and the options by group.
std::string command_help(const Syntax& syntax, const TextStyle& style);

}  // namespace plimsoll::cli
