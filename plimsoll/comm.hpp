// Ranks that exchange bytes, usable by itself: no tensors, no libtorch.
//
//   int main(int argc, char** argv) {
//     return plimsoll::comm::launch(argc, argv, 4, [](plimsoll::comm::Communicator& world) {
//       std::vector<float> gradients(1000, 1.F), sums(250);
//       world.reduce_scatter(view(std::span<const float>(gradients)), view(std::span(sums))).wait();
//       return sums[0] == 4.F ? 0 : 1;
//     });
//   }
//
// Manuals: comm/communicator.hpp (start here: collectives, order of sums, memory), comm/launch.hpp
// (how ranks start and end), comm/error.hpp (what can go wrong), comm/self.hpp, comm/threads.hpp (the
// other backends), comm/recording.hpp, checked.hpp, delayed.hpp, faulty.hpp (decorators).
#pragma once

#include "plimsoll/comm/checked.hpp"
#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/comm/delayed.hpp"
#include "plimsoll/comm/faulty.hpp"
#include "plimsoll/comm/launch.hpp"
#include "plimsoll/comm/recording.hpp"
#include "plimsoll/comm/self.hpp"
#include "plimsoll/comm/threads.hpp"
