// What a job needs of a device, again and again for jobs that differ a little: the question that a
// search asks.
//
// The figure that decides is the most real one that is known, of the whole run and of one rank, held
// against what the device has after its reserve:
//   backend cuda  bytes that PyTorch's caching allocator reserves, libraries' workspaces included,
//                 with its free segments given back when the device is full; it fits when no request
//                 fails. A plan's memory.reserved is the same figure.
//   backend cpu   requested bytes, which its allocator hands out as they are.
// Not counted: what NCCL, cuDNN and other processes take, which is why a narrow fit is called tight.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/network/autograd/autograd.hpp"
#include "plimsoll/network/families/families.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/fold/folded_network.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/plan/memory_sink.hpp"
#include "plimsoll/plan/walk.hpp"
#include "plimsoll/shard/layout.hpp"

namespace plimsoll::plan {

// Of one rank. FLOPs and traffic are what a search pays with.
struct Need {
  std::int64_t bytes = 0;      // the figure that decides
  std::int64_t requested = 0;  // highest bytes of tensors; grows with the batch as a straight line
  std::int64_t available = 0;  // what `bytes` is held against
  bool fits = false;
  bool at_least = false;     // `bytes` is the model's states alone, which are too many already
  double flops = 0;          // of one step, all micro-batches, attention in full
  std::int64_t traffic = 0;  // of one step: bytes taken from other ranks
};

// What `Need::bytes` counts for this job, in words.
std::string_view decided_by(const Job& job);

// Bytes that a job may use on its device: what the driver reports minus the reserve. Needs a device.
std::int64_t available_bytes(const Job& job);

// Asks for one model. Not thread-safe: walks share their memory.
class NeedSearch {
 public:
  // Keeps a reference to the spec, which is valid.
  explicit NeedSearch(const network::NetworkSpec& spec) : spec_(spec) {}

  // None when no such job exists (plan::validate refuses it) or its sizes leave 64 bits. The job has a
  // device.
  std::optional<Need> of(const Job& job);

  // The same verdict for less work. What fits is as in `of`; what does not has in `bytes` what its
  // tensors request, or its model states (`at_least`), and no more than those known of the rest.
  std::optional<Need> quick(const Job& job);

  // The same when it fits, none when it does not: a walk ends at the first request that fails.
  std::optional<Need> if_fits(const Job& job);

  // For less work again, false only where if_fits has none: whether its tensors alone would fit.
  bool may_fit(const Job& job);

  const network::NetworkSpec& spec() const { return spec_; }
  int walks() const { return walks_; }  // so far

 private:
  // What the sizes of a model's states depend on.
  struct StatesKey {
    network::BuildOptions options;  // without those that change no parameter
    std::int32_t ranks = 1;
    bool operator==(const StatesKey&) const = default;
  };
  // For jobs of the same build options.
  struct Built {
    network::BuildOptions options;
    std::optional<network::Network> network;
    std::optional<fold::FoldedNetwork> folded;
    bool tried_to_fold = false;
  };

  enum class Asked : std::uint8_t { kNeed, kVerdict, kIfFits, kIfTensorsFit };

  std::optional<Need> ask(const Job& job, Asked asked);
  Need decide(const Job& job, Asked asked, std::int64_t available);
  // These are valid until the next call of one of them for another job.
  Built& built_for(const Job& job);
  const network::Network& network_of(const Job& job);
  const fold::FoldedNetwork* folded_of(const Job& job);
  // The same to everything but a walk: the one that is there for less work.
  const network::Network& any_network_of(const Job& job);
  const std::vector<shard::UnitLayout>& layouts_of(const Job& job);
  WalkResult walked(const Job& job, const WalkOptions& options, timeline::Sink& sink);
  Need requested_need(const Job& job);
  Need reserved_need(const Job& job, MemorySink& sink);

  const network::NetworkSpec& spec_;
  network::AutogradMemory memory_;
  std::optional<Built> built_;
  std::vector<std::pair<StatesKey, std::vector<shard::UnitLayout>>> layouts_;
  int walks_ = 0;
};

}  // namespace plimsoll::plan
