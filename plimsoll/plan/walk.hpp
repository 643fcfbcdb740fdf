// The calculated run: a network and a job walked through the model of autograd, pushing every
// allocation and release into a sink. Pure: no I/O, clock, environment or threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plimsoll/network/autograd/autograd.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/plan/step_traffic.hpp"
#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::plan {

// FLOPs of one micro-batch by pass; recompute is what checkpointing adds to backward.
struct PassFlops {
  network::FlopCount forward;
  network::FlopCount backward;
  network::FlopCount recompute;
};

struct WalkOptions {
  std::int32_t steps = 2;    // step 0 is the first, the last one is steady
  bool warm = false;         // optimizer states exist before step 0: step 0 is already steady
  bool keep_ledger = false;  // record what the first micro-batch of step 0 saves
  // Asked between micro-batches of a step: whether the sink is as it was at the last such instant, so that
  // those up to the last one would only repeat what it saw. They are left out then, and count in the
  // traffic. Empty: all are walked. The first and the last micro-batch differ from the others.
  std::function<bool()> repeats = nullptr;
  // By operation id: how many operations of a larger network the one of this id stands for; FLOPs and traffic
  // count that often. Null: one each.
  const std::vector<std::int64_t>* weights = nullptr;
  // Reused by one walk after the other, which then asks the system for none; null: the walk's own.
  network::AutogradMemory* memory = nullptr;
};

struct WalkResult {
  std::vector<network::SavedRecord> ledger;
  PassFlops flops;
  StepTraffic traffic;             // of the last step, per rank
  std::size_t tensors_leaked = 0;  // alive after everything was dropped; 0 unless we have a bug
};

// Phase "model" allocates parameters, master copies, buffers, inputs and (implementation plimsoll)
// optimizer states; then `steps` training steps. A job of inference has parameters, inputs and the cache,
// and every step is one forward pass without gradients. Events carry operation ids; operation_names() gives
// their names. Per rank. Throws OverflowError when sizes leave 64 bits.
WalkResult walk(const network::Network& network, const Job& job, const WalkOptions& options,
                timeline::Sink& sink);

// Operation ids of the walk: 0 none, 1 .. n operations of the network, then one per parameter for
// itself and for optimizer events, then one per unit for its shards, for what is gathered and reduced.
std::string operation_name(const network::Network& network, timeline::OperationId id);
std::vector<std::string> operation_names(const network::Network& network);
inline timeline::OperationId operation_id(std::size_t index) {
  return static_cast<timeline::OperationId>(index + 1);
}

// Of a job that writes a checkpoint from a copy of its state: bytes of the copy, per rank.
std::int64_t snapshot_bytes(const network::Network& network, const Job& job);

// The walk as a recorded timeline with names.
timeline::Timeline walk_timeline(const network::Network& network, const Job& job,
                                 const WalkOptions& options, WalkResult* result = nullptr);

}  // namespace plimsoll::plan
