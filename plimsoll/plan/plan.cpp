#include "plimsoll/plan/plan.hpp"

#include <algorithm>

#include "plimsoll/plan/advice.hpp"
#include "plimsoll/plan/memory_sink.hpp"
#include "plimsoll/plan/optimizer_walk.hpp"

namespace plimsoll::plan {
namespace {

using timeline::Phase;
using timeline::Tag;

std::int64_t of(const timeline::BytesByTag& bytes, Tag tag) {
  return bytes[static_cast<std::size_t>(tag)];
}

StepTimeline step_timeline(const timeline::PeakSink& sink, std::int32_t step,
                           const network::Network& network) {
  StepTimeline result;
  for (const timeline::PhaseFigures& phase : sink.phases()) {
    if (phase.key.step == step && phase.key.phase != Phase::kModel) result.phases.push_back(phase);
  }
  result.peak = sink.peak(step);
  result.peak_operation = operation_name(network, result.peak.operation);
  return result;
}

// Remembers what is alive when the steady optimizer phase begins: parameters, gradients, states.
class PostsSink final : public MemorySink {
 public:
  PostsSink(const network::Network& network, const Job& job, std::int32_t steady_step)
      : MemorySink(network, job), steady_(steady_step) {}
  void begin_phase(timeline::PhaseKey key) override {
    MemorySink::begin_phase(key);
    if (key.phase == Phase::kOptimizer && key.step == steady_) at_optimizer = peak.alive();
  }

  timeline::BytesByTag at_optimizer{};

 private:
  const std::int32_t steady_;
};

std::int64_t step_counters(const network::Network& network, const Job& job) {
  if (!has_step_counters(job.optimizer, job.optimizer_impl)) return 0;
  const auto learns = [](const network::Parameter& p) { return p.trainable; };
  const auto parameters =
      std::count_if(network.parameters.begin(), network.parameters.end(), learns);
  return 4 * static_cast<std::int64_t>(parameters);
}

Posts make_posts(const timeline::BytesByTag& alive, const network::Network& network, const Job& job,
                 const Ledger& ledger) {
  Posts posts;
  posts.parameters = of(alive, Tag::kParameters) + of(alive, Tag::kMasterCopy);
  posts.gradients = of(alive, Tag::kGradients);
  posts.step_counters = step_counters(network, job);
  posts.counters_on_host = counters_on_host(job);
  const std::int64_t counters_alive = posts.counters_on_host ? 0 : posts.step_counters;
  posts.moments = of(alive, Tag::kOptimizer) - counters_alive;
  posts.activations = ledger.distinct.bytes;
  return posts;
}

Plan plan_network(const network::NetworkSpec& spec, const Job& job) {
  const network::Network network = network::build_network(spec, job.build_options());
  WalkOptions walk_options;
  walk_options.keep_ledger = true;
  const std::int32_t steady = walk_options.steps - 1;
  Plan plan;
  plan.spec = spec;
  plan.job = job;
  plan.library = job.facts().library;
  PostsSink sink(network, job, steady);
  const WalkResult result = walk(network, job, walk_options, sink);
  plan.parameter_count = network.parameter_elements();
  plan.parameter_tensors = static_cast<std::int64_t>(network.parameters.size());
  plan.ledger = count_ledger(result.ledger);
  plan.posts = make_posts(sink.at_optimizer, network, job, plan.ledger);
  plan.first = step_timeline(sink.peak, 0, network);
  plan.steady = step_timeline(sink.peak, steady, network);
  plan.memory = make_memory(network, job, plan.steady.peak, steady,
                            sink.allocator ? &*sink.allocator : nullptr);
  plan.flops = result.flops;
  plan.rule_6nt = checked_mul(checked_mul(6, plan.parameter_count),
                              checked_mul(job.batch, std::max<std::int64_t>(job.sequence, 1)));
  if (spec.family != network::Family::kCnn) {
    plan.closed_form = closed_form_of(spec, job, plan.parameter_count, plan.ledger);
    plan.time = step_time(spec, job);
  }
  plan.traffic = traffic_lines(network, job, result.traffic);
  plan.advice = sharding_advice(network, job, plan.steady.peak.bytes);
  plan.hugging_face = hugging_face_of(spec, job);
  if (job.device) {
    NeedSearch search(spec);
    plan.fit = make_fit(search, job);
  }
  return plan;
}

}  // namespace

Result<Plan> make_plan(const network::NetworkSpec& spec, const Job& job) {
  if (auto ok = network::validate(spec); !ok) return tl::unexpected(ok.error());
  if (auto ok = validate(job, spec); !ok) return tl::unexpected(ok.error());
  try {
    return plan_network(spec, job);
  } catch (const OverflowError& overflow) {
    return fail("plan", overflow.what(),
                "the sizes of the model, the batch or the sequence are "
                "beyond any machine");
  }
}

}  // namespace plimsoll::plan
