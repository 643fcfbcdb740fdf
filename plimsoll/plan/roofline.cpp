#include <algorithm>

#include "plimsoll/plan/cost.hpp"

namespace plimsoll::plan {

using hardware::Arithmetic;

Arithmetic arithmetic_of(network::DType dtype) {
  switch (dtype) {
    case network::DType::kFloat64:
      return Arithmetic::kFp64;
    case network::DType::kFloat16:
      return Arithmetic::kFp16;
    case network::DType::kBFloat16:
      return Arithmetic::kBf16;
    default:
      return Arithmetic::kFp32;
  }
}

std::optional<RooflinePoint> roofline(const hardware::Device& device, Arithmetic arithmetic,
                                      double flops, double bytes) {
  const std::optional<double> peak = device.peak(arithmetic).matmul();
  if (!peak || !device.bandwidth.value) return std::nullopt;
  const double compute = flops / *peak;
  const double memory = bytes / *device.bandwidth.value;
  return RooflinePoint{std::max(compute, memory), compute >= memory};
}

std::optional<double> ridge(const hardware::Device& device, Arithmetic arithmetic) {
  const std::optional<double> peak = device.peak(arithmetic).matmul();
  if (!peak || !device.bandwidth.value) return std::nullopt;
  return *peak / *device.bandwidth.value;
}

std::optional<TimeBound> time_bound(const std::vector<CostRow>& rows,
                                    const hardware::Device& device, Arithmetic arithmetic) {
  TimeBound bound;
  for (const CostRow& row : rows) {
    const auto point = roofline(device, arithmetic, static_cast<double>(row.flops.causal_exact),
                                static_cast<double>(row.bytes()));
    if (!point) return std::nullopt;
    bound.seconds += point->seconds;
    (point->by_compute ? bound.compute_seconds : bound.memory_seconds) += point->seconds;
  }
  return bound;
}

std::vector<CostRow> recomputed_rows(const std::vector<CostRow>& rows, network::Checkpoint policy) {
  std::vector<CostRow> again;
  if (policy == network::Checkpoint::kNone) return again;
  const bool products = policy == network::Checkpoint::kBlock;
  for (const CostRow& row : rows) {
    const bool outside = row.operation.starts_with("embedding") || row.operation == "unembedding" ||
                         row.operation == "head transform" || row.operation == "cross entropy";
    if (row.pass != "forward" || outside) continue;
    // Policy "matmuls" keeps the results of linear layers.
    const bool linear = row.flops.full > 0 && row.operation != "scores and values";
    if (products || !linear) again.push_back(row);
  }
  return again;
}

std::optional<TimeBound> step_time(const network::NetworkSpec& spec, const Job& job) {
  if (!job.device) return std::nullopt;
  const ModelShape model = shape_of(spec);
  const Arithmetic arithmetic = arithmetic_of(job.recipe().compute);
  std::vector<CostRow> rows = training_rows(model, cost_sizes(job));
  for (CostRow& row : recomputed_rows(rows, job.checkpoint)) rows.push_back(std::move(row));
  auto micro_batch = time_bound(rows, *job.device, arithmetic);
  const auto update = time_bound({optimizer_row(model, job)}, *job.device, arithmetic);
  if (!micro_batch || !update) return std::nullopt;
  const auto times = static_cast<double>(job.accumulate);
  return TimeBound{times * micro_batch->seconds + update->seconds,
                   times * micro_batch->compute_seconds + update->compute_seconds,
                   times * micro_batch->memory_seconds + update->memory_seconds};
}

}  // namespace plimsoll::plan
