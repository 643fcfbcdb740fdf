// A call written out again with other options, ready to be typed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/plan/fit/changes.hpp"

namespace plimsoll::cli {

// "plimsoll report gpt2 --out gpt2.html": the call as it was given.
std::string call_line(const Given& given);

// "plimsoll plan MODEL --batch 2": what was given, `settings` in the place of what they change. Without
// the options of the output (--json, --out ...). Words that a shell would read otherwise are quoted.
std::string command_with(const Given& given, std::string_view command,
                         const std::vector<plan::Setting>& settings);

// Fills in the commands of changes: each plans the changed job.
void write_commands(plan::Changes& changes, const Given& given);

}  // namespace plimsoll::cli
