#include "plimsoll/comm/threads.hpp"

#include <memory>
#include <thread>

#include "plimsoll/comm/self.hpp"
#include "plimsoll/comm/shared/group.hpp"

namespace plimsoll::comm {
namespace {

// Runs the body and tells the others when it throws.
std::exception_ptr run_rank(Communicator& world, const std::function<void(Communicator&)>& body) {
  try {
    body(world);
    return nullptr;
  } catch (const std::exception& error) {
    world.abort(error.what());
    return std::current_exception();
  }
}

}  // namespace

std::vector<std::exception_ptr> run_threads(int ranks,
                                            const std::function<void(Communicator&)>& body,
                                            const ThreadsOptions& options) {
  if (ranks == 1) return {run_rank(*make_self(), body)};
  const auto segment = Segment::in_process(ranks, options.arena_bytes);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto world = make_world(segment, r, options.timeout);
      thrown[static_cast<std::size_t>(r)] = run_rank(*world, body);
      segment->header().rank[r].end.store(End::kExited, std::memory_order_release);
      segment->ring_all();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

}  // namespace plimsoll::comm
