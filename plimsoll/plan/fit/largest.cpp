#include "plimsoll/plan/fit/largest.hpp"

#include <algorithm>
#include <cmath>

namespace plimsoll::plan {
namespace {

constexpr std::int64_t kMostRows = std::int64_t{1} << 40;  // as plan::validate
constexpr std::int64_t kMostRanks = 65536;

// A value that fits and a larger one that does not, and what is known of the way between.
class Bracket {
 public:
  Bracket(const NeedOf& need_of, std::int64_t most) : need_of_(need_of), fails_(most + 1) {}

  // Asks for `value`, which lies inside. True when it fits.
  bool ask(std::int64_t value) {
    const std::optional<Need> need = need_of_(value);
    if (!need || !need->fits) {
      fails_ = value;
      failed_ = true;
      failure_ = need;
      return false;
    }
    before_ = last_;
    last_ = {value, *need};
    return true;
  }

  std::int64_t fits() const { return last_.value; }
  bool contains(std::int64_t value) const { return last_.value < value && value < fails_; }
  bool closed() const { return last_.value + 1 >= fails_; }

  // Where a straight line meets the available bytes: between a value that fits and one that does not,
  // or on through what the last two values request, with what the allocator has beyond it unchanged.
  std::int64_t predicted() const {
    double run = difference(last_.value, before_.value);
    double rise = difference(last_.need.requested, before_.need.requested);
    if (failed_) {
      run = difference(fails_, last_.value);
      rise = failure_ ? difference(failure_->bytes, last_.need.bytes) : 0;
    }
    if (!(rise > 0)) return halfway();
    const double room = difference(last_.need.available, last_.need.bytes);
    return inside(static_cast<double>(last_.value) + std::floor(room * run / rise));
  }

  // The middle, or twice the value while none is known that fails.
  std::int64_t halfway() const {
    if (!failed_) return inside(2 * static_cast<double>(last_.value));
    return last_.value + (fails_ - last_.value) / 2;
  }

 private:
  struct Point {
    std::int64_t value = 0;
    Need need;
  };

  static double difference(std::int64_t a, std::int64_t b) { return static_cast<double>(a - b); }

  std::int64_t inside(double value) const {
    const auto low = static_cast<double>(last_.value + 1);
    const auto high = static_cast<double>(fails_ - 1);
    return static_cast<std::int64_t>(std::clamp(value, low, high));
  }

  const NeedOf& need_of_;
  Point last_, before_;  // values that fit
  std::int64_t fails_;
  std::optional<Need> failure_;  // what fails_ needs, when that is known
  bool failed_ = false;
};

}  // namespace

std::optional<std::int64_t> largest_that_fits(const NeedOf& need_of, std::int64_t most,
                                              std::int64_t asked) {
  Bracket bracket(need_of, most);
  if (most < 1 || !bracket.ask(1)) return std::nullopt;
  // The law holds from 2 on: 2 and 3 are its first two points.
  for (const std::int64_t value : {std::int64_t{2}, std::int64_t{3}, asked}) {
    if (bracket.contains(value)) bracket.ask(value);
  }
  // A law that is no straight line is bisected after a few predictions, so that the number of walks is
  // bounded by the digits of `most`.
  constexpr int kPredictions = 6;
  for (int predictions = 0; !bracket.closed(); ++predictions) {
    bracket.ask(predictions < kPredictions ? bracket.predicted() : bracket.halfway());
  }
  return bracket.fits();
}

std::optional<std::int64_t> largest_batch(NeedSearch& search, const Job& job) {
  Job other = job;
  return largest_that_fits(
      [&](std::int64_t batch) {
        other.batch = batch;
        return search.quick(other);
      },
      kMostRows, job.batch);
}

LargestByClosedForm closed_form_largest(const network::NetworkSpec& spec, const Job& job,
                                        const network::ParameterCount& parameters) {
  if (spec.family == network::Family::kCnn) return {};
  const auto posts_at = [&](std::int64_t batch) {
    Job other = job;
    other.batch = batch;
    return closed_form_of(spec, other, parameters, {}).posts;
  };
  const ClosedFormPosts one = posts_at(1);
  const double row = posts_at(2).activations - one.activations;
  const double states = one.parameters + one.gradients + one.optimizer;
  const double constant = one.activations - row;  // A0
  const auto rows_in = [&](double bytes) -> std::optional<std::int64_t> {
    const double rows = std::floor(bytes / row);
    if (rows < 1) return std::nullopt;
    return static_cast<std::int64_t>(std::min(rows, static_cast<double>(kMostRows)));
  };
  const double room = static_cast<double>(available_bytes(job)) - states;
  return {rows_in(room - constant), rows_in(room)};
}

std::optional<std::int64_t> longest_sequence(NeedSearch& search, const Job& job) {
  if (search.spec().family == network::Family::kCnn) return std::nullopt;
  Job other = job;
  return largest_that_fits(
      [&](std::int64_t tokens) {
        other.sequence = tokens;
        return search.quick(other);
      },
      search.spec().positions, job.sequence);
}

FewestRanks fewest_ranks(NeedSearch& search, const Job& job) {
  Job other = job;
  FewestRanks result;
  const bool divides = job.stage != shard::Stage::kNothing;
  result.stage = other.stage = divides ? job.stage : shard::Stage::kParameters;
  const auto fits = [&](std::int64_t ranks) {
    other.ranks = static_cast<std::int32_t>(ranks);
    if (ranks == 1 && !divides) other.stage = shard::Stage::kNothing;
    const std::optional<Need> need = search.quick(other);
    other.stage = result.stage;
    return need && need->fits;
  };
  std::int64_t most = 1;
  while (most < kMostRanks && !fits(most)) most *= 2;
  if (!fits(most)) return result;
  std::int64_t least = most / 2;  // does not fit; 0 when one rank does
  while (least + 1 < most) {
    const std::int64_t middle = least + (most - least) / 2;
    (fits(middle) ? most : least) = middle;
  }
  result.ranks = static_cast<std::int32_t>(most);
  return result;
}

}  // namespace plimsoll::plan
