// What a walk needs at its highest: bytes of tensors, and beside them the blocks and segments of the
// device's allocator, when the job's backend has one. Per rank.
#pragma once

#include <optional>

#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/allocator/allocator_sink.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::plan {

class MemorySink : public timeline::Sink {
 public:
  // The allocator may reserve what the job's device has after its reserve; without one, anything.
  MemorySink(const network::Network& network, const Job& job);

  void begin_phase(timeline::PhaseKey key) override;
  void end_phase() override;
  void allocate(timeline::BlockId block, std::int64_t bytes, timeline::Tag tag,
                timeline::OperationId operation) override;
  void release(timeline::BlockId block, std::int64_t bytes, timeline::Tag tag,
               timeline::OperationId operation) override;
  void retag(timeline::BlockId block, std::int64_t bytes, timeline::Tag from,
             timeline::Tag to) override;

  timeline::PeakSink peak;
  std::optional<allocator::AllocatorSink> allocator;  // none on the CPU
};

}  // namespace plimsoll::plan
