// Starts the ranks of one host: `shm`, what `--ranks R` means.
//
//   int main(int argc, char** argv) {
//     return plimsoll::comm::launch(argc, argv, 2, [](plimsoll::comm::Communicator& world) {
//       ...
//       return 0;
//     });
//   }
//
// The first call in main, or after the options were read and nothing else was done: ranks are fresh
// processes of the same program with the same arguments, which run main up to this call (a child
// that only forks would inherit the locks of libraries whose threads are gone). They share an
// inherited memory file; nothing is left behind whatever happens.
//
// The caller becomes the launcher. It watches the ranks, passes SIGINT, SIGTERM, SIGHUP, SIGQUIT,
// SIGUSR1 and SIGUSR2 on to all of them and waits for them. Ranks have process groups of their own,
// so that Ctrl-C arrives once, and die with the launcher. Rank 0 has the launcher's stdin unless
// that is a terminal, the others have /dev/null; stdout and stderr are everybody's.
//
// When a rank dies, throws, returns non-zero or leaves without returning from `body`, the launcher
// prints the first cause once on stderr, with rank, step, unit and operation as far as known; the
// others get it as a CommError at their next wait, and SIGKILL after `grace`.
#pragma once

#include <cstdint>
#include <functional>

#include "plimsoll/comm/communicator.hpp"

namespace plimsoll::comm {

struct LaunchOptions {
  Milliseconds timeout{300'000};  // of Work::wait() without an argument
  Milliseconds grace{5'000};      // from the first failure until the rest is killed
  std::int64_t arena_bytes = 0;   // address space per rank for allocate(); 0: the machine's memory
};

// Returns an exit code: 0 when every rank returned 0; the first failed rank's code, 128 + signal
// when it was killed; 3 for an exception in `body` (70 for an InternalError); 2 when this process
// was started by torchrun, whose ranks are another world, or for a number of ranks outside
// 1 .. kMaxRanks. With ranks = 1 `body` runs in this process on `self`.
int launch(int argc, char** argv, int ranks, const std::function<int(Communicator&)>& body,
           const LaunchOptions& options = {});

// True in a process that launch() started, before and after the call.
bool is_launched_rank();

}  // namespace plimsoll::comm
