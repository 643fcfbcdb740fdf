// The copies of the logits: every tensor of rows x V values that a step makes between the head's
// product and its gradient. With a large vocabulary they decide the peak, and people count one of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/timeline/event.hpp"

namespace plimsoll::plan {

struct LogitCopy {
  std::string what;  // "logits", "log-softmax", "gradient of the log-softmax", ...
  timeline::Phase phase = timeline::Phase::kLoss;
  std::int64_t item = 0;   // bytes per logit
  std::int64_t bytes = 0;  // of the copy
};

struct LogitCopies {
  std::int32_t chunks = 1;
  std::int64_t rows = 0;  // of one chunk; B T without chunks
  std::int64_t vocabulary = 0;
  std::vector<LogitCopy> copies;  // of one chunk, in the order in which they are made
  std::int64_t most_at_once = 0;  // bytes of them alive together
  std::int64_t peak_whole = 0;    // chunks only: the steady step's peak with all logits at once
};

// Watches the first micro-batch of one step of a walk. Not for image networks.
class LogitSink final : public timeline::Sink {
 public:
  // Both must outlive this object.
  LogitSink(const network::Network& network, const Job& job, std::int32_t step);

  void begin_phase(timeline::PhaseKey key) override;
  void end_phase() override {}
  void allocate(timeline::BlockId block, std::int64_t bytes, timeline::Tag tag,
                timeline::OperationId operation) override;
  void release(timeline::BlockId block, std::int64_t bytes, timeline::Tag tag,
               timeline::OperationId operation) override;
  void retag(timeline::BlockId, std::int64_t, timeline::Tag, timeline::Tag) override {}

  LogitCopies take() { return std::move(found_); }

 private:
  bool watches() const;
  std::string what_of(std::size_t operation, std::int64_t item);

  const network::Network& network_;
  const std::int32_t step_;
  const DType loss_dtype_;
  std::size_t first_ = 0;  // operations [first_, named_end_) make copies; chunks repeat them
  std::size_t named_end_ = 0;
  LogitCopies found_;
  timeline::PhaseKey phase_;
  std::unordered_map<timeline::BlockId, std::int64_t> alive_;
  std::int64_t alive_bytes_ = 0;
  std::map<std::size_t, int> seen_;  // in backward, by operation: its copies so far
};

}  // namespace plimsoll::plan
