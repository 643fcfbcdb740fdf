#include "plimsoll/plan/traffic.hpp"

#include <fmt/format.h>

#include "plimsoll/plan/network_units.hpp"

namespace plimsoll::plan {
namespace {

using shard::Stage;

// Bytes of a model's parameters as they travel: of all, of the root, of those that are trained.
struct Sizes {
  std::int64_t all = 0;
  std::int64_t root = 0;
  std::int64_t trained = 0;
  std::int64_t trained_elements = 0;
};

Sizes sizes_of(const NetworkUnits& units) {
  Sizes sizes;
  for (std::size_t u = 0; u < units.layouts.size(); ++u) {
    for (const shard::Group& group : units.layouts[u].groups()) {
      const std::int64_t bytes = checked_mul(group.flat().elements(), group.type().bytes);
      sizes.all = checked_add(sizes.all, bytes);
      if (u == units.units.root()) sizes.root = checked_add(sizes.root, bytes);
      if (!group.trainable()) continue;
      sizes.trained = checked_add(sizes.trained, bytes);
      sizes.trained_elements = checked_add(sizes.trained_elements, group.flat().elements());
    }
  }
  return sizes;
}

// bytes * (R - 1) / R without leaving 64 bits on the way.
std::int64_t from_others(std::int64_t bytes, std::int64_t ranks) {
  return bytes / ranks * (ranks - 1) + bytes % ranks * (ranks - 1) / ranks;
}

std::string times(std::int64_t count) { return count == 1 ? "" : fmt::format("{} ", count); }

TrafficLine gathers(const Job& job, const Sizes& sizes, const CollectiveCount& counted) {
  const std::int64_t passes = job.accumulate;
  const std::int64_t once = checked_mul(2, sizes.all) - (job.reshard_root ? 0 : sizes.root);
  return {"gather parameters",
          "all-gather",
          counted.units,
          counted.bytes,
          fmt::format("{}{} e (R-1)/R", times(passes),
                      job.reshard_root ? "2 Psi" : "(2 Psi - Psi_root)"),
          from_others(checked_mul(passes, once), job.ranks)};
}

TrafficLine reductions(const Job& job, const Sizes& sizes, const CollectiveCount& counted) {
  const shard::Arithmetic a = job.arithmetic();
  const std::int64_t times_reduced = job.reduce_each ? job.accumulate : 1;
  const bool all_reduce = job.stage == Stage::kNothing;
  std::int64_t once = a.local_sums ? checked_mul(sizes.trained_elements, a.sum) : sizes.trained;
  const std::string travels = a.local_sums ? fmt::format("{}", a.sum) : "e";
  if (all_reduce) once = checked_add(once, checked_mul(sizes.trained_elements, a.sum));
  return {"reduce gradients",
          all_reduce ? "all-reduce" : "reduce-scatter",
          counted.units,
          counted.bytes,
          all_reduce ? fmt::format("{}Psi ({} + {}) (R-1)/R", times(times_reduced), travels, a.sum)
                     : fmt::format("{}Psi {} (R-1)/R", times(times_reduced), travels),
          from_others(checked_mul(times_reduced, once), job.ranks)};
}

TrafficLine updates(const Job& job, const Sizes& sizes, const CollectiveCount& counted) {
  return {"gather updated parameters",
          "all-gather",
          counted.units,
          counted.bytes,
          "Psi e (R-1)/R",
          from_others(sizes.trained, job.ranks)};
}

}  // namespace

std::vector<TrafficLine> traffic_lines(const network::Network& network, const Job& job,
                                       const StepTraffic& traffic) {
  std::vector<TrafficLine> lines;
  if (job.ranks == 1) return lines;
  const Sizes sizes = sizes_of(units_of(network, job.ranks));
  if (traffic.gathers.units > 0) lines.push_back(gathers(job, sizes, traffic.gathers));
  if (traffic.reductions.units > 0) lines.push_back(reductions(job, sizes, traffic.reductions));
  if (traffic.updates.units > 0) lines.push_back(updates(job, sizes, traffic.updates));
  return lines;
}

TextbookTraffic textbook_traffic(Stage stage, double root_share, bool reshard_root) {
  switch (stage) {
    case Stage::kNothing:
    case Stage::kGradients:
      return {2, 2};
    case Stage::kOptimizer:
      return {3, 2};
    case Stage::kParameters:
      return {3, reshard_root ? 3 : 3 - root_share};
  }
  return {};
}

}  // namespace plimsoll::plan
