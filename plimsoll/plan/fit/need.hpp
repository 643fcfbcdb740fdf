// What a job needs of a device, again and again for jobs that differ a little: the question that a
// search asks.
//
// The figure that decides is the highest instant of the whole run (first step and steady step) in
// requested bytes of one rank, held against what the device has after its reserve. Not counted: what
// allocators round up and what fragmentation wastes, which is why a narrow fit is called tight.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "plimsoll/network/autograd/autograd.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::plan {

// Of one rank. FLOPs and traffic are what a search pays with.
struct Need {
  std::int64_t bytes = 0;      // the figure that decides
  std::int64_t available = 0;  // what it is held against
  bool fits = false;
  double flops = 0;          // of one step, all micro-batches, attention in full
  std::int64_t traffic = 0;  // of one step: bytes taken from other ranks
};

// What `Need::bytes` counts, in words.
std::string_view decided_by();

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

  const network::NetworkSpec& spec() const { return spec_; }
  int walks() const { return walks_; }  // so far

 private:
  const network::NetworkSpec& spec_;
  network::AutogradMemory memory_;
  int walks_ = 0;
};

}  // namespace plimsoll::plan
