// Ranks as threads of this process, over the same code as `shm`: for tests, thread sanitizer and
// injected faults. Memory that is not from Communicator::allocate is staged as between processes.
#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "plimsoll/comm/communicator.hpp"

namespace plimsoll::comm {

struct ThreadsOptions {
  Milliseconds timeout{60'000};        // of Work::wait() without an argument
  std::int64_t arena_bytes = 1 << 30;  // address space per rank for allocate()
};

// Runs `body` once per rank, each on a thread of its own, and returns when all have ended. An
// exception of one ends the world for all. Returns what each rank threw; null: nothing.
std::vector<std::exception_ptr> run_threads(int ranks,
                                            const std::function<void(Communicator&)>& body,
                                            const ThreadsOptions& options = {});

}  // namespace plimsoll::comm
