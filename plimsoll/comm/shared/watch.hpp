// The launcher's part while the ranks run.
#pragma once

#include <csignal>
#include <memory>
#include <sys/types.h>
#include <vector>

#include "plimsoll/comm/shared/segment.hpp"
#include "plimsoll/comm/work.hpp"

namespace plimsoll::comm {

// The signals that a launcher waits for: SIGCHLD and those it passes on. To be blocked in the
// launcher before it starts a rank.
sigset_t launcher_signals();

// Waits for all `children` (rank r is number r), notes their ends in the segment, passes signals on,
// kills what still runs `grace` after the first failure. Returns the exit code of launch().
int watch_ranks(const Segment& segment, std::vector<pid_t> children, Milliseconds grace);

}  // namespace plimsoll::comm
