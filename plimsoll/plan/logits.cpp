#include "plimsoll/plan/logits.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "plimsoll/plan/walk.hpp"

namespace plimsoll::plan {
namespace {

using network::Network;
using network::OpKind;
using timeline::Phase;

// The head's product is the last linear layer.
std::size_t head_of(const Network& network) {
  std::size_t head = 0;
  for (std::size_t i = 0; i < network.operations.size(); ++i) {
    if (network.operations[i].kind == OpKind::kLinear) head = i;
  }
  return head;
}

std::int64_t rows_of_chunk(const Job& job) {
  const std::int64_t rows = checked_mul(job.batch, job.sequence);
  return (rows + job.loss_chunks - 1) / job.loss_chunks;
}

// Autocast casts the head's matrix beside the logits.
bool casts_parameter(const Network& network, const network::Operation& op) {
  if (op.kind != OpKind::kTo) return false;
  return std::any_of(network.parameters.begin(), network.parameters.end(),
                     [&](const network::Parameter& p) { return p.value == op.inputs[0]; });
}

}  // namespace

LogitSink::LogitSink(const Network& network, const Job& job, std::int32_t step)
    : network_(network), step_(step), loss_dtype_(job.recipe().loss) {
  found_.chunks = job.loss_chunks;
  found_.rows = rows_of_chunk(job);
  found_.vocabulary = network.vocabulary;
  const bool chunked = job.loss_chunks > 1;
  first_ = chunked ? network.loss_begin : head_of(network);
  named_end_ = network.operations.size();
  if (!chunked) return;
  for (std::size_t i = network.regions.size(); i > 0; --i) {
    const network::Region& region = network.regions[i - 1];
    if (region.first >= first_) named_end_ = region.last;  // at last the first chunk
  }
}

void LogitSink::begin_phase(timeline::PhaseKey key) { phase_ = key; }

bool LogitSink::watches() const {
  const bool inside = phase_.phase == Phase::kForward || phase_.phase == Phase::kLoss ||
                      phase_.phase == Phase::kBackward;
  return inside && phase_.step == step_ && phase_.micro_batch == 0;
}

// Backward of a cross entropy is that of nll_loss, then that of log_softmax; reruns of a chunk come
// before both.
std::string LogitSink::what_of(std::size_t operation, std::int64_t item) {
  const network::Operation& op = network_.operations[operation];
  const bool backward = phase_.phase == Phase::kBackward;
  const char* again = backward ? " again" : "";
  if (op.kind == OpKind::kLinear) return fmt::format("logits{}", again);
  if (op.kind == OpKind::kTo) {
    const bool gradient = backward && item != network::size_of(loss_dtype_);
    return gradient ? "gradient of the logits"
                    : fmt::format("logits in {}{}", network::name(op.attributes.dtype), again);
  }
  if (op.kind == OpKind::kCrossEntropy) {
    const int before = backward ? seen_[operation]++ : 0;
    const int rerun = backward && found_.chunks > 1 ? 1 : 0;
    if (!backward || before < rerun) return fmt::format("log-softmax{}", again);
    if (before == rerun) return "gradient of the log-softmax";
    return fmt::format("gradient of the logits in {}", network::name(loss_dtype_));
  }
  return fmt::format("{} of {}", backward ? "gradient or copy" : "result", network::name(op.kind));
}

void LogitSink::allocate(timeline::BlockId block, std::int64_t bytes, timeline::Tag,
                         timeline::OperationId operation) {
  if (!watches() || operation <= first_ || operation > network_.operations.size()) return;
  const std::int64_t values = checked_mul(found_.rows, found_.vocabulary);
  const std::int64_t item = bytes / values;
  if (item * values != bytes || (item != 2 && item != 4 && item != 8)) return;
  const std::size_t index = operation - 1;
  if (casts_parameter(network_, network_.operations[index])) return;
  // What a product's backward pass makes, after the rerun of a chunk, are gradients of weights and
  // inputs.
  const bool product = network_.operations[index].kind == OpKind::kLinear;
  const int reruns = found_.chunks > 1 ? 1 : 0;
  if (phase_.phase == Phase::kBackward && product && reruns <= seen_[index]++) return;
  alive_.emplace(block, bytes);
  alive_bytes_ = checked_add(alive_bytes_, bytes);
  found_.most_at_once = std::max(found_.most_at_once, alive_bytes_);
  if (index < named_end_)
    found_.copies.push_back({what_of(index, item), phase_.phase, item, bytes});
}

void LogitSink::release(timeline::BlockId block, std::int64_t bytes, timeline::Tag,
                        timeline::OperationId) {
  if (alive_.erase(block) > 0) alive_bytes_ -= bytes;
}

}  // namespace plimsoll::plan
