// comm::launch for ranks that use libtorch.
#pragma once

#include <functional>

#include "plimsoll/comm/launch.hpp"

namespace plimsoll::engine::zero {

// As comm::launch (comm/launch.hpp), and besides: every rank gets its share of the cores as libtorch's
// threads, at least one (more threads than cores make it many times slower), and libtorch's exceptions
// come without their stack. To be called before libtorch has started threads: first in main.
int launch(int argc, char** argv, int ranks, const std::function<int(comm::Communicator&)>& body,
           const comm::LaunchOptions& options = {});

// The same for a program that no longer has its arguments at hand: they are read from the system. To be
// called once, at the same place in every process.
int launch(int ranks, const std::function<int(comm::Communicator&)>& body,
           const comm::LaunchOptions& options = {});

}  // namespace plimsoll::engine::zero
