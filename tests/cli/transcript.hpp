// Transcripts: commands with the output they must give, as a reader sees them.
//
//   $ plimsoll plan gpt2
//   gpt2: 124,439,808 parameters (124.44 M) in 148 tensors
//   ...
//
// A line "..." stands for any lines, dots at the end of a line for its rest. In a .md file transcripts are fenced blocks marked ```console;
// any other file is one transcript. Commands run under sh in the repository root, stdout and stderr
// together; `./run plimsoll` means the built program as well, and commands of other programs are not
// run. What needs a training run is checked only where the engine is built.
#pragma once

#include <string>
#include <vector>

namespace plimsoll::test {

// The text with the output of every command replaced by what it gives now; output that matches,
// dots included, is left as it is. `commands` counts those that were run.
std::string refreshed(const std::string& path, const std::string& text, int& commands);

// Checks the file, or rewrites it when UPDATE_GOLDEN is set. At least `least` commands must be there.
void check_transcript(const std::string& path, int least);

}  // namespace plimsoll::test
