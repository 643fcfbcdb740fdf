// The posts of a plan close: they and the named rest are what is alive when the optimizer steps.
#include <cstdint>

#include <doctest/doctest.h>

#include "plimsoll/plan/plan.hpp"

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

constexpr int kJobs = 2000;
constexpr std::int64_t kCounterBytes = 4;

template <class Items>
std::int64_t bytes_of(const Items& items) {
  std::int64_t total = 0;
  for (const auto& item : items) {
    total += network::element_count(item.shape) * network::size_of(item.dtype);
  }
  return total;
}

// Logits of one micro-batch, or the rows of classes of an image network.
std::int64_t logits_bytes(const RandomJob& random) {
  const plan::Job& job = random.job;
  const bool cnn = random.spec.family == network::Family::kCnn;
  const std::int64_t rows = cnn ? job.batch : job.batch * job.sequence;
  const std::int64_t columns = cnn ? random.spec.classes : random.spec.vocabulary;
  return rows * columns * network::size_of(job.recipe().compute);
}

bool has_counters(const plan::Job& job) {
  return job.optimizer == plan::Optimizer::kAdamW &&
         (job.optimizer_impl == plan::OptimizerImpl::kTorchPython ||
          job.optimizer_impl == plan::OptimizerImpl::kTorchFused);
}

}  // namespace

TEST_CASE("2,000 jobs: each post is parameters times its bytes") {
  for_each_random_job(kJobs, [](const RandomJob& random) {
    const auto plan = plan::make_plan(random.spec, random.job);
    REQUIRE(plan.has_value());
    const plan::Recipe recipe = random.job.recipe();
    const std::int64_t count = plan->parameter_count;
    const std::int64_t master = recipe.master ? network::size_of(*recipe.master) : 0;
    CHECK(plan->posts.parameters == count * (network::size_of(recipe.compute) + master));
    CHECK(plan->posts.gradients ==
          count * network::size_of(recipe.accumulator.value_or(recipe.compute)));
    CHECK(plan->posts.moments ==
          count * plan::moments(random.job.optimizer) * network::size_of(recipe.state));
    CHECK(plan->posts.step_counters ==
          (has_counters(random.job) ? kCounterBytes * plan->parameter_tensors : 0));
    CHECK(plan->posts.activations == plan->ledger.distinct.bytes);
  });
}

TEST_CASE("2,000 jobs: posts, inputs, buffers, loss and held logits sum to what is alive") {
  for_each_random_job(kJobs, [](const RandomJob& random) {
    const auto plan = plan::make_plan(random.spec, random.job);
    REQUIRE(plan.has_value());
    const network::Network network = random.network();
    const plan::Posts& posts = plan->posts;
    const std::int64_t held = random.job.hold_logits ? logits_bytes(random) : 0;
    const std::int64_t expected = posts.parameters + posts.gradients + posts.optimizer() +
                                  bytes_of(network.inputs) + bytes_of(network.buffers) +
                                  network::size_of(random.job.recipe().loss) + held;
    bool seen = false;
    for (const timeline::PhaseFigures& f : plan->steady.phases) {
      if (f.key.phase != timeline::Phase::kOptimizer) continue;
      seen = true;
      CHECK(f.start == expected);
      CHECK(f.end == expected);
    }
    CHECK(seen);
  });
}

TEST_CASE("2,000 jobs: what forward keeps is the ledger, the loss and what frames hold") {
  for_each_random_job(kJobs, [](const RandomJob& random) {
    // A checkpoint's closure also keeps tables that no node saved.
    if (random.job.checkpoint != network::Checkpoint::kNone || random.job.hold_logits) return;
    const auto plan = plan::make_plan(random.spec, random.job);
    REQUIRE(plan.has_value());
    std::int64_t before = 0;
    std::int64_t after = 0;
    for (const timeline::PhaseFigures& f : plan->first.phases) {
      if (f.key.micro_batch != 0) continue;
      if (f.key.phase == timeline::Phase::kForward) before = f.start;
      if (f.key.phase == timeline::Phase::kBackward) after = f.start;
    }
    // distinct_hf leaves out inputs, which were there before.
    CHECK(after - before ==
          plan->ledger.distinct_hf.bytes + network::size_of(random.job.recipe().loss));
  });
}

}  // namespace plimsoll::test
