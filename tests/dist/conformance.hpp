// What every backend has to do, as one function: the same suite runs on self, threads, shm and mpi.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plimsoll/comm/communicator.hpp"

namespace plimsoll::test {

struct ConformanceOptions {
  std::int64_t large_bytes = 8 << 20;  // of the whole tensor in the large cases
  bool random_pauses = false;          // before calls and waits, other ones on each rank
};

// Runs the suite; throws std::runtime_error naming the case at the first wrong element. Every result
// is compared bit by bit with sums computed here, in rank order.
void run_conformance(comm::Communicator& world, const ConformanceOptions& options = {});

// The bits of element `index` of the input of `rank`, written to `to`. Magnitudes vary by 2^24, so
// that sums in another order give other bits.
void write_element(comm::DType dtype, int rank, std::int64_t index, std::byte* to);

// The sum of element `index` over `ranks`, as sum_dtype(dtype).
void write_sum(comm::DType dtype, int ranks, std::int64_t index, std::byte* to);

}  // namespace plimsoll::test
