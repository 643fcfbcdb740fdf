// Starts this program again as the ranks of a segment.
#pragma once

#include <csignal>
#include <sys/types.h>
#include <vector>

#include "plimsoll/comm/shared/segment.hpp"

namespace plimsoll::comm {

// The environment variable by which a rank knows what it is: "rank,descriptor,launcher".
inline constexpr const char* kRankVariable = "PLIMSOLL_COMM_RANK";

// Exit code of a child whose exec failed.
inline constexpr int kNotStarted = 127;

// Forks and executes /proc/self/exe with `argv` once per rank. `mask`: the signal mask of the ranks.
// Throws std::system_error when the system refuses; ranks started until then are killed.
std::vector<pid_t> spawn_ranks(const Segment& segment, char** argv, const sigset_t& mask);

}  // namespace plimsoll::comm
