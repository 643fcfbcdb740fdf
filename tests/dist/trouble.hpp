// What the troubles of sharded training (trouble_*.cpp) have in common.
//
// Each case is named after a trouble that users of other libraries reported: its numbers count these
// reports, gaps are intended. A case runs on every rank of one launched group and throws where it finds
// the trouble here: results are right, or the mistake is refused by name within the deadline.
// What ends a world is tried in worlds of threads that rank 0 starts.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "plimsoll/comm/threads.hpp"
#include "plimsoll/zero.hpp"

#include "tests/dist/sharded_model.hpp"

namespace plimsoll::tests {

namespace zero = engine::zero;
using comm::Communicator;
using shard::Stage;

struct Trouble {
  std::string name;
  std::function<void(Communicator&)> run;
};

std::vector<Trouble> ownership_troubles();
std::vector<Trouble> unit_troubles();
std::vector<Trouble> control_flow_troubles();
std::vector<Trouble> collective_troubles();
std::vector<Trouble> number_troubles();
std::vector<Trouble> memory_troubles();

// Throws std::runtime_error(what) unless it holds.
void require(bool holds, const std::string& what);
// Calls `function`, which has to throw, with a message that contains all parts.
void require_refused(const std::function<void()>& function,
                     std::initializer_list<const char*> parts);

// Values that depend on names and shapes alone: the same on all ranks and threads.
void set_values(torch::nn::Module& module);
void set_value(const std::string& name, at::Tensor tensor);
// A rank's input, fp32.
at::Tensor rows(at::IntArrayRef shape, int rank, int micro_batch = 0);

bool same_bits(const at::Tensor& a, const at::Tensor& b);
// In rank order, the same on every rank. Collective.
double sum_over_ranks(Communicator& world, double value);

// Mean gradients over ranks and k micro-batches of a module in one process, by name: 16-bit ones widened,
// sums over the ranks in rank order, then (once: before) over micro-batches, one division.
using Loss = std::function<at::Tensor(int rank, int micro_batch)>;
using Gradients = std::map<std::string, at::Tensor>;
Gradients mean_gradients(torch::nn::Module& module, int ranks, const Loss& loss,
                         int micro_batches = 1, bool once = false);
// The same bits in the sharded module. Collective.
void require_gradients(ShardedModule& sharded, const Gradients& expected, const std::string& what,
                       int micro_batches = 1);

ZeroSettings at_stage(int stage);

// The tiny model twice: whole, and sharded with a unit per block.
struct ShardedTiny {
  ShardedTiny(Communicator& world, const ZeroSettings& settings, const TinyShape& shape = {});
  at::Tensor loss(int rank, int micro_batch = 0);  // of the sharded one, as written
  at::Tensor run(int rank, int micro_batch = 0, bool last = true);
  Gradients expected(int micro_batches = 1, bool once = false);

  Communicator& world;
  TinyShape shape;
  TinyModel plain, model;
  ShardedModule sharded;
};

// Runs `body` in a world of threads; what each rank threw, "" for nothing. No rank may be late.
// `timeout`: of each wait.
std::vector<std::string> in_threads(int ranks, const std::function<void(Communicator&)>& body,
                                    comm::Milliseconds timeout = comm::Milliseconds(8'000));
// The same with 2 ranks, on rank 0 of `world` while the other waits (worlds of other sizes do nothing):
// both have to end with a message that contains all parts.
void require_world_refuses(Communicator& world, const std::function<void(Communicator&)>& body,
                           std::initializer_list<const char*> parts,
                           comm::Milliseconds timeout = comm::Milliseconds(8'000));

// A sharded step in which rank 1 is killed in "forward", "backward" or "step".
int killed_step(Communicator& world, const std::string& place);

}  // namespace plimsoll::tests
