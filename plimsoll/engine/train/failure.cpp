#include "plimsoll/engine/train/failure.hpp"

namespace plimsoll::engine {

void end_world(comm::Communicator& world, const comm::Cause& cause) {
  if (world.rank() == cause.rank) return world.fail(cause);
  try {
    world.barrier({"the end", cause.step}).wait();
  } catch (const comm::CommError&) {
    // What the barrier waits for: the rank has told its error.
  }
}

}  // namespace plimsoll::engine
