// What fits: 500 random jobs on devices of random size.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "plimsoll/plan/allocator/allocator_sink.hpp"
#include "plimsoll/plan/fit/fit_report.hpp"
#include "plimsoll/plan/fit/moves.hpp"
#include "plimsoll/plan/memory.hpp"
#include "plimsoll/plan/plan.hpp"
#include "plimsoll/plan/walk.hpp"

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

using plan::Need;

// Each job is planned some hundred times. PLIMSOLL_JOBS runs more of them.
int job_count() {
  const char* wanted = std::getenv("PLIMSOLL_JOBS");
  return wanted == nullptr ? 500 : std::max(1, std::atoi(wanted));
}
const int kJobs = job_count();

std::shared_ptr<const hardware::Device> device_with(std::int64_t bytes) {
  return std::make_shared<const hardware::Device>(
      hardware::device_of_size(bytes, fmt::format("{}", bytes)));
}

// What a job needs of a device that has `available` bytes for it, from a recording of its own: no
// search, no memory kept from another walk.
std::int64_t decided_bytes(const network::NetworkSpec& spec, const plan::Job& job,
                           std::int64_t available) {
  const network::Network network = network::build_network(spec, job.build_options());
  const timeline::Timeline recorded = plan::walk_timeline(network, job, {});
  if (job.backend == network::Backend::kCpu) return timeline::find_peak(recorded).bytes;
  plan::allocator::AllocatorSink sink(plan::library_blocks(network, job), available);
  timeline::replay(recorded, sink);
  const std::int64_t bytes = sink.reserved_peak().bytes;
  CHECK((bytes <= available) == !sink.out_of_memory().has_value());
  return bytes;
}

std::int64_t needed_bytes(const RandomJob& random, const plan::Job& job) {
  return decided_bytes(random.spec, job, plan::available_bytes(random.job));
}

// Random ranks and stages, on a device of a third to six times what the job needs; half are too
// small. On a GPU more rows, so that tensors and not workspaces decide.
RandomJob on_a_device(const RandomJob& random, Dice& dice) {
  RandomJob result = random;
  plan::Job& job = result.job;
  if (dice.coin()) {
    job.optimizer_impl = plan::OptimizerImpl::kPlimsoll;
    job.ranks = static_cast<std::int32_t>(dice.pick<std::int64_t>({1, 2, 3, 8}));
    job.stage = static_cast<shard::Stage>(dice.between(0, 3));
  }
  // Deep ones are walked short by a search, and whole here.
  if (result.spec.family != network::Family::kCnn && dice.one_in(4)) deepen(result.spec, dice);
  if (!plan::validate(job, result.spec)) result = random;
  if (job.backend == network::Backend::kCuda && !dice.one_in(4)) {
    job.batch *= dice.pick<std::int64_t>({16, 256, 4096});
  }
  const std::int64_t bytes = decided_bytes(result.spec, job, plan::allocator::kUnlimited);
  const std::int64_t tenths = dice.coin() ? dice.between(3, 9) : dice.between(10, 60);
  result.job.device = device_with(std::max<std::int64_t>(1, bytes * tenths / 10));
  result.job.reserve = 0;
  return result;
}

template <class Check>
void for_each_job_on_a_device(Check&& check) {
  Dice dice(20261130);
  for_each_random_job(kJobs, [&](const RandomJob& random) {
    const RandomJob chosen = on_a_device(random, dice);
    INFO(fmt::format("ranks={} stage={} device={}", chosen.job.ranks,
                     static_cast<int>(chosen.job.stage), chosen.job.device->name));
    check(chosen);
  });
}

bool fits(const RandomJob& random, const plan::Job& job) {
  return plan::validate(job, random.spec).has_value() &&
         needed_bytes(random, job) <= plan::available_bytes(random.job);
}

// With one more it does not fit, or there is no more.
template <class Set>
void check_largest(const RandomJob& random, std::optional<std::int64_t> largest, Set set) {
  const auto with = [&](std::int64_t value) {
    plan::Job job = random.job;
    set(job, value);
    return job;
  };
  if (!largest) {
    CHECK_FALSE(fits(random, with(1)));
    return;
  }
  CAPTURE(*largest);
  CHECK(fits(random, with(*largest)));
  CHECK_FALSE(fits(random, with(*largest + 1)));
}

TEST_CASE("the largest batch fits and one row more does not") {
  int found = 0;
  for_each_job_on_a_device([&](const RandomJob& random) {
    plan::NeedSearch search(random.spec);
    const auto largest = plan::largest_batch(search, random.job);
    check_largest(random, largest, [](plan::Job& job, std::int64_t value) { job.batch = value; });
    CHECK(search.walks() <= 60);
    if (largest && *largest > 3) ++found;
  });
  CHECK(found > cases(kJobs) / 8);
}

TEST_CASE("the longest sequence fits, and one token more does not or has no position") {
  int found = 0;
  for_each_job_on_a_device([&](const RandomJob& random) {
    if (random.spec.family == network::Family::kCnn) return;
    plan::NeedSearch search(random.spec);
    const auto longest = plan::longest_sequence(search, random.job);
    if (longest == random.spec.positions) {
      plan::Job job = random.job;
      job.sequence = *longest;
      CHECK(fits(random, job));
      return;
    }
    check_largest(random, longest,
                  [](plan::Job& job, std::int64_t value) { job.sequence = value; });
    ++found;
  });
  CHECK(found > cases(kJobs) / 10);
}

TEST_CASE("what a search needs is what a plan needs, and a quick answer has the same verdict") {
  int on_gpus = 0;
  for_each_job_on_a_device([&](const RandomJob& random) {
    plan::NeedSearch search(random.spec);
    const auto need = search.of(random.job);
    REQUIRE(need);
    CHECK(need->bytes == needed_bytes(random, random.job));
    CHECK(need->fits == (need->bytes <= need->available));
    const auto quick = search.quick(random.job);
    REQUIRE(quick);
    CHECK(quick->fits == need->fits);
    CHECK(quick->bytes <= need->bytes);
    const auto fitting = search.if_fits(random.job);
    CHECK(fitting.has_value() == need->fits);
    if (!need->fits) return;
    CHECK(quick->bytes == need->bytes);
    CHECK(quick->requested == need->requested);
    CHECK(quick->flops == need->flops);
    CHECK(quick->traffic == need->traffic);
    CHECK(fitting->bytes == need->bytes);
    CHECK(fitting->traffic == need->traffic);
    if (random.job.backend == network::Backend::kCuda) ++on_gpus;
  });
  CHECK(on_gpus > cases(kJobs) / 20);
}

// The figures of a plan that has a device agree with its verdict.
void check_plan(const plan::Plan& plan) {
  const bool cuda = plan.job.backend == network::Backend::kCuda;
  const plan::Need& need = plan.fit->need;
  CHECK(need.bytes == (cuda ? *plan.memory.reserved.bytes
                            : std::max(plan.first.peak.bytes, plan.steady.peak.bytes)));
  CHECK(need.fits == (need.bytes <= need.available));
  if (cuda) CHECK(need.fits == !plan.memory.out_of_memory);
  CHECK(need.fits == (plan.fit->verdict != plan::Verdict::kDoesNotFit));
  CHECK(need.fits == (plan.fit->largest_batch.value_or(0) >= plan.job.batch));
}

// The level of `move` that the change has taken; none: it leaves it alone.
std::optional<std::size_t> level_in(const plan::Change& change, const plan::Move& move) {
  const auto taken = [&](const plan::Setting& setting) {
    return std::any_of(change.settings.begin(), change.settings.end(), [&](const auto& other) {
      return other.option == setting.option && other.value == setting.value;
    });
  };
  for (std::size_t level = 0; level < move.levels.size(); ++level) {
    const auto& settings = move.levels[level].settings;
    if (std::all_of(settings.begin(), settings.end(), taken)) return level;
  }
  return std::nullopt;
}

// None of its options is changed more than suffices: with one a level milder it does not fit. In a model of one
// layer levels are not in the order of their bytes: what reduces it may outweigh what a higher stage divides.
void check_mildest(const RandomJob& random, const plan::Change& change) {
  if (random.spec.layers == 1) return;
  const std::vector<plan::Move> moves = plan::moves_of(random.spec, random.job);
  for (const plan::Move& weakened : moves) {
    const auto taken = level_in(change, weakened);
    if (!taken || *taken == 0) continue;
    plan::Job milder = random.job;
    for (const plan::Move& move : moves) {
      const auto level = level_in(change, move);
      if (!level) continue;
      move.levels[&move == &weakened ? *level - 1 : *level].apply(milder);
    }
    CAPTURE(weakened.what);
    CHECK_FALSE(fits(random, milder));
  }
}

TEST_CASE("plans, their verdicts and the plans of their advised changes agree") {
  int jobs = 0;
  int advised = 0;
  for_each_job_on_a_device([&](const RandomJob& random) {
    if (++jobs % 4 != 0) return;
    const auto plan = plan::make_plan(random.spec, random.job);
    REQUIRE(plan);
    check_plan(*plan);
    const auto report = plan::make_fit_report(random.spec, random.job);
    REQUIRE(report);
    CHECK(report->fit.need.bytes == plan->fit->need.bytes);
    CHECK(report->fit.largest_batch == plan->fit->largest_batch);
    for (const plan::Change& change : plan->fit->changes.found) {
      const auto changed = plan::make_plan(random.spec, change.job);
      REQUIRE(changed);
      check_plan(*changed);
      CHECK(changed->fit->need.fits);
      CHECK(changed->fit->need.bytes == change.need.bytes);
      ++advised;
    }
  });
  CHECK(advised >= cases(kJobs) / 25);
}

// The kinds of single settings with which a job fits, every level of every move tried.
std::vector<plan::ChangeCost> fitting_singles(const RandomJob& random) {
  std::vector<plan::ChangeCost> costs;
  for (const plan::Move& move : plan::moves_of(random.spec, random.job)) {
    for (const plan::Level& level : move.levels) {
      plan::Job job = random.job;
      level.apply(job);
      if (fits(random, job)) {
        costs.push_back(move.cost);
        break;
      }
    }
  }
  return costs;
}

void check_cheapest_first(const std::vector<plan::Change>& found) {
  for (std::size_t i = 1; i < found.size(); ++i) {
    CHECK(found[i - 1].cost <= found[i].cost);
    if (found[i - 1].cost == found[i].cost) CHECK(found[i - 1].flops <= found[i].flops);
  }
}

TEST_CASE("every advised change, planned again, fits; what fits alone is not overlooked") {
  int advised = 0;
  int combined = 0;
  for_each_job_on_a_device([&](const RandomJob& random) {
    plan::NeedSearch search(random.spec);
    const plan::Fit fit = plan::make_fit(search, random.job);
    if (fit.need.fits) {
      CHECK(fit.changes.found.empty());
      return;
    }
    CHECK(fit.verdict == plan::Verdict::kDoesNotFit);
    CHECK(fit.changes.found.empty() == !fit.changes.reason.empty());
    CHECK(fit.changes.found.size() <= 3);
    for (const plan::Change& change : fit.changes.found) {
      CHECK(fits(random, change.job));
      CHECK(needed_bytes(random, change.job) == change.need.bytes);
      CHECK(change.saved == fit.need.bytes - change.need.bytes);
      CHECK(change.saved > 0);
      if (advised % 3 == 0) check_mildest(random, change);
      ++advised;
      if (change.settings.size() > 2) ++combined;
    }
    check_cheapest_first(fit.changes.found);
    const auto costs = fitting_singles(random);
    if (costs.empty()) return;
    REQUIRE_FALSE(fit.changes.found.empty());
    CHECK(fit.changes.found[0].cost <= *std::min_element(costs.begin(), costs.end()));
  });
  CHECK(advised > cases(kJobs) / 4);
  CHECK(combined >= cases(kJobs) / 25);
}

}  // namespace
}  // namespace plimsoll::test
