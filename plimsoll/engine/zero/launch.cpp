#include "plimsoll/engine/zero/launch.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine::zero {

int launch(int argc, char** argv, int ranks, const std::function<int(comm::Communicator&)>& body,
           const comm::LaunchOptions& options) {
  const auto rank_body = [&](comm::Communicator& world) {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    at::set_num_threads(std::max(1, cores / world.size()));
    try {
      return body(world);
    } catch (const c10::Error& error) {
      throw std::runtime_error(error.what_without_backtrace());
    }
  };
  return comm::launch(argc, argv, ranks, rank_body, options);
}

}  // namespace plimsoll::engine::zero
