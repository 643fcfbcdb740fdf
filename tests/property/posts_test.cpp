// The posts of a plan close: they and the named rest are what is alive when the optimizer steps.
#include <cstdint>

#include <doctest/doctest.h>

#include "plimsoll/plan/plan.hpp"

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

constexpr int kBudgets = 2000;
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
  return rows * columns * network::size_of(job.recipe().operand);
}

// The first occurrence of a phase in a step.
timeline::PhaseFigures phase_of(const plan::StepTimeline& step, timeline::Phase phase) {
  for (const timeline::PhaseFigures& f : step.phases) {
    if (f.key.phase == phase) return f;
  }
  FAIL("no such phase");
  return {};
}

bool has_counters(const plan::Job& job) {
  return job.optimizer == plan::Optimizer::kAdamW &&
         (job.optimizer_impl == plan::OptimizerImpl::kTorchPython ||
          job.optimizer_impl == plan::OptimizerImpl::kTorchFused);
}

}  // namespace

TEST_CASE("2,000 jobs: P is parameters times bytes, G and O are those that learn times theirs") {
  for_each_random_job(kBudgets, [](const RandomJob& random) {
    const auto plan = plan::make_plan(random.spec, random.job);
    REQUIRE(plan.has_value());
    const plan::Recipe recipe = random.job.recipe();
    const std::int64_t all = plan->parameters.all;
    const std::int64_t count = plan->parameters.trainable;
    const std::int64_t master = recipe.master ? network::size_of(*recipe.master) : 0;
    CHECK(plan->posts.parameters == all * network::size_of(recipe.compute) + count * master);
    CHECK(plan->posts.gradients ==
          count * network::size_of(recipe.accumulator.value_or(recipe.compute)));
    CHECK(plan->posts.moments ==
          count * plan::moments(random.job.optimizer) * network::size_of(recipe.state));
    CHECK(plan->posts.step_counters ==
          (has_counters(random.job) ? kCounterBytes * plan->parameters.trainable_tensors : 0));
    CHECK(plan->posts.activations == plan->ledger.distinct.bytes);
  });
}

TEST_CASE(
    "2,000 jobs: between steps weights and states are alive, before the optimizer all posts") {
  for_each_random_job(kBudgets, [](const RandomJob& random) {
    const auto plan = plan::make_plan(random.spec, random.job);
    REQUIRE(plan.has_value());
    const network::Network network = random.network();
    const plan::Posts& posts = plan->posts;
    const std::int64_t elsewhere = posts.counters_on_host ? posts.step_counters : 0;
    const std::int64_t lasting = posts.parameters + posts.optimizer() - elsewhere +
                                 bytes_of(network.inputs) + bytes_of(network.buffers);
    const std::int64_t held = random.job.hold_logits ? logits_bytes(random) : 0;
    const std::int64_t stepping =
        lasting + posts.gradients + network::size_of(random.job.recipe().loss) + held;
    const timeline::PhaseFigures zeroed = phase_of(plan->steady, timeline::Phase::kZeroGrad);
    const timeline::PhaseFigures optimizer = phase_of(plan->steady, timeline::Phase::kOptimizer);
    CHECK(zeroed.start == lasting + posts.gradients);
    CHECK(zeroed.end == lasting);
    CHECK(optimizer.start == stepping);
    CHECK(optimizer.end == stepping);
  });
}

TEST_CASE("2,000 jobs: what forward keeps is the ledger, the loss and what frames hold") {
  for_each_random_job(kBudgets, [](const RandomJob& random) {
    // A checkpoint's closure also keeps tables that no node saved.
    if (random.job.checkpoint != network::Checkpoint::kNone || random.job.hold_logits) return;
    // transformers' adapters scale by a number, which the node keeps and no hook sees.
    if (random.job.lora && random.job.semantics == network::Semantics::kHuggingFace) return;
    const auto plan = plan::make_plan(random.spec, random.job);
    REQUIRE(plan.has_value());
    // distinct_hf leaves out inputs, which were there before, and counts what the host keeps.
    CHECK(phase_of(plan->first, timeline::Phase::kBackward).start -
              phase_of(plan->first, timeline::Phase::kForward).start ==
          plan->ledger.distinct_hf.bytes - plan->ledger.host_bytes +
              network::size_of(random.job.recipe().loss));
  });
}

}  // namespace plimsoll::test
