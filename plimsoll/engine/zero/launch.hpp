// comm::launch for ranks that use libtorch.
#pragma once

#include <functional>

#include "plimsoll/comm/launch.hpp"

namespace plimsoll::engine::zero {

// What a rank with libtorch does, for any launcher: it gets its share of the cores as libtorch's threads, at
// least one (more threads than cores make it many times slower), it keeps its memory between steps
// (library/process_memory.hpp), and libtorch's exceptions come without their stack. `ranks_here`: ranks on
// this host; 0: all of them.
std::function<int(comm::Communicator&)> as_rank(std::function<int(comm::Communicator&)> body,
                                                int ranks_here = 0);

// comm::launch (comm/launch.hpp) with as_rank(body). To be called before libtorch has started threads:
// first in main.
int launch(int argc, char** argv, int ranks, const std::function<int(comm::Communicator&)>& body,
           const comm::LaunchOptions& options = {});

// The same for a program that no longer has its arguments at hand: they are read from the system. To be
// called once, at the same place in every process.
int launch(int ranks, const std::function<int(comm::Communicator&)>& body,
           const comm::LaunchOptions& options = {});

}  // namespace plimsoll::engine::zero
