#include "plimsoll/engine/train/not_finite.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "plimsoll/engine/zero/network_shards.hpp"
#include "plimsoll/plan/network_units.hpp"
#include "plimsoll/plan/walk.hpp"

namespace plimsoll::engine {
namespace {

constexpr double kFinite = std::numeric_limits<double>::infinity();  // nothing was found

std::vector<double> from_all(comm::Communicator& world, double own, std::int64_t step) {
  std::vector<double> all(static_cast<std::size_t>(world.size()));
  world
      .all_gather(comm::view(std::span<const double>(&own, 1)), comm::view(std::span<double>(all)),
                  {"not finite", step})
      .wait();
  return all;
}

// Micro-batch times the number of operations, plus the operation; or none.
double first_in_forward(Runner& runner, const plan::Job& job,
                        const std::function<void(int)>& fill) {
  const auto operations = static_cast<double>(runner.network().operations.size());
  double first = kFinite;
  for (int m = 0; m < job.accumulate; ++m) {
    const std::optional<std::size_t> found = runner.first_not_finite([&] { fill(m); });
    if (found) first = std::min(first, m * operations + static_cast<double>(*found));
  }
  return first;
}

// The last unit in forward order whose gradients are not finite: backward reached it first. The root
// lies at both ends and counts when no other does.
double first_in_backward(zero::Sharder& sharder) {
  double found = -1;
  for (shard::UnitIndex u = 0; u < sharder.unit_count(); ++u) {
    for (const zero::OwnedPiece& piece : sharder.owned(u)) {
      if (!piece.gradient.defined() || piece.gradient.isfinite().all().item<bool>()) continue;
      if (u != sharder.root() || found < 0) found = u;
    }
  }
  return found;
}

std::string text_of(const FailedStep& failed, int rank) {
  const double loss = failed.losses[static_cast<std::size_t>(rank)];
  const std::string value = std::isfinite(loss)
                                ? fmt::format("gradient norm={}", failed.gradient_norm)
                                : fmt::format("loss={}", loss);
  return value +
         ", expected a finite number (a smaller --lr, --clip 1, --warm-up or --precision fp32 may "
         "help)";
}

// The first of `losses` that is not finite; else rank 0.
int first_rank(const std::vector<double>& losses) {
  const auto found =
      std::find_if(losses.begin(), losses.end(), [](double loss) { return !std::isfinite(loss); });
  return found == losses.end() ? 0 : static_cast<int>(found - losses.begin());
}

// Where backward made it, when forward did not.
void blame_backward(comm::Communicator& world, zero::Sharder& sharder, comm::Cause& cause) {
  const auto root = static_cast<double>(sharder.root());
  double unit = -1;
  for (const double u : from_all(world, first_in_backward(sharder), cause.step)) {
    if (u >= 0 && (unit < 0 || unit == root || (u != root && u > unit))) unit = u;
  }
  cause.operation = "backward";
  if (unit >= 0) cause.unit = sharder.unit(static_cast<shard::UnitIndex>(unit)).name();
}

}  // namespace

comm::Cause first_not_finite(Runner& runner, const plan::Job& job, comm::Communicator& world,
                             const FailedStep& failed, const std::function<void(int)>& fill) {
  zero::Sharder& sharder = runner.shards()->sharder();
  comm::Cause cause;
  cause.step = failed.step;
  const std::vector<double> forward =
      from_all(world, first_in_forward(runner, job, fill), failed.step);
  const auto first = std::min_element(forward.begin(), forward.end());
  if (*first == kFinite) {
    cause.rank = first_rank(failed.losses);
    blame_backward(world, sharder, cause);
  } else {
    const network::Network& network = runner.network();
    const auto operations = static_cast<double>(network.operations.size());
    const auto index = static_cast<std::size_t>(std::fmod(*first, operations));
    cause.rank = static_cast<int>(first - forward.begin());
    cause.operation = plan::operation_name(network, plan::operation_id(index));
    cause.unit = sharder.unit(plan::borders_of(network, sharder.root())[index].unit).name();
  }
  cause.reporter = cause.rank;
  cause.text = text_of(failed, cause.rank);
  return cause;
}

}  // namespace plimsoll::engine
