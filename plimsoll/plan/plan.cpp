#include "plimsoll/plan/plan.hpp"

#include <algorithm>
#include <cmath>

#include "plimsoll/plan/advice.hpp"
#include "plimsoll/plan/memory_sink.hpp"
#include "plimsoll/plan/model_states.hpp"
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
    if (logits) logits->begin_phase(key);
    if (key.phase == Phase::kOptimizer && key.step == steady_) at_optimizer = peak.alive();
  }
  void allocate(timeline::BlockId b, std::int64_t n, Tag t, timeline::OperationId o) override {
    MemorySink::allocate(b, n, t, o);
    if (logits) logits->allocate(b, n, t, o);
  }
  void release(timeline::BlockId b, std::int64_t n, Tag t, timeline::OperationId o) override {
    MemorySink::release(b, n, t, o);
    if (logits) logits->release(b, n, t, o);
  }

  std::optional<LogitSink> logits;
  timeline::BytesByTag at_optimizer{};

 private:
  const std::int32_t steady_;
};

std::int64_t step_counters(const network::Network& network, const Job& job) {
  if (!has_step_counters(job.optimizer, job.optimizer_impl)) return 0;
  return 4 * network.parameter_count().trainable_tensors;
}

Posts make_posts(const timeline::BytesByTag& alive, const network::Network& network, const Job& job,
                 const Ledger& ledger) {
  Posts posts;
  posts.parameters = of(alive, Tag::kParameters) + of(alive, Tag::kMasterCopy);
  posts.gradients = of(alive, Tag::kGradients);
  posts.step_counters = step_counters(network, job);
  posts.counters_on_host = counters_on_host(job);
  const std::int64_t counters_alive = posts.counters_on_host ? 0 : posts.step_counters;
  posts.loss_scaler = job.recipe().loss_scaler ? kLossScalerBytes : 0;
  posts.moments = of(alive, Tag::kOptimizer) - counters_alive - posts.loss_scaler;
  posts.activations = ledger.distinct.bytes;
  return posts;
}

// The recipe's formulas in place of what the walk has.
void use_formulas(const Job& job, std::int64_t parameters, Posts& posts) {
  const ModelStateRecipe* recipe = find_model_state_recipe(name(job.precision));
  check(recipe != nullptr, "a formula recipe without formulas");
  const ModelStates states = model_states(*recipe, static_cast<double>(parameters), job.ranks,
                                          static_cast<int>(job.stage));
  posts.parameters = std::llround(states.parameters);
  posts.gradients = std::llround(states.gradients);
  posts.moments = std::llround(states.optimizer);
  posts.by_formula = true;
}

std::int64_t peak_without_chunks(const network::NetworkSpec& spec, Job job, std::int32_t steady) {
  job.loss_chunks = 1;
  const network::Network network = network::build_network(spec, job.build_options());
  timeline::PeakSink sink;
  walk(network, job, {.steps = steady + 1}, sink);
  return sink.peak(steady).bytes;
}

Fit fit_of(const network::NetworkSpec& spec, const Job& job) {
  NeedSearch search(spec);
  return make_fit(search, job);
}

// Both passes have the same figures but for what an allocator keeps from the first one.
Plan plan_inference(const network::NetworkSpec& spec, const Job& job) {
  const network::Network network = network::build_network(spec, job.build_options());
  MemorySink sink(network, job);
  const WalkOptions options;
  const WalkResult result = walk(network, job, options, sink);
  Plan plan;
  plan.spec = spec;
  plan.job = job;
  plan.library = job.facts().library;
  plan.parameters = network.parameter_count();
  plan.first = step_timeline(sink.peak, 0, network);
  plan.steady = step_timeline(sink.peak, options.steps - 1, network);
  const timeline::Peak& peak = plan.steady.peak;
  const timeline::PhaseFigures& pass = plan.steady.phases.at(0);
  plan.posts.parameters = of(peak.alive, Tag::kParameters);
  plan.inference = InferencePosts{of(peak.alive, Tag::kKvCache), of(peak.alive, Tag::kInputs),
                                  pass.peak - pass.start, pass.end - pass.start};
  plan.memory = make_memory(network, job, peak, options.steps - 1,
                            sink.allocator ? &*sink.allocator : nullptr);
  plan.flops = result.flops;
  plan.hugging_face = hugging_face_of(spec, job);
  if (job.device) plan.fit = fit_of(spec, job);
  return plan;
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
  const bool image = spec.family == network::Family::kCnn;
  if (!image) sink.logits.emplace(network, job, steady);
  const WalkResult result = walk(network, job, walk_options, sink);
  plan.parameters = network.parameter_count();
  plan.ledger = count_ledger(result.ledger);
  plan.posts = make_posts(sink.at_optimizer, network, job, plan.ledger);
  if (is_formula(job.precision)) use_formulas(job, plan.parameters.all, plan.posts);
  plan.first = step_timeline(sink.peak, 0, network);
  plan.steady = step_timeline(sink.peak, steady, network);
  plan.memory = make_memory(network, job, plan.steady.peak, steady,
                            sink.allocator ? &*sink.allocator : nullptr);
  plan.flops = result.flops;
  plan.rule_6nt = checked_mul(checked_mul(6, plan.parameters.all),
                              checked_mul(job.batch, std::max<std::int64_t>(job.sequence, 1)));
  if (sink.logits) {
    plan.logits = sink.logits->take();
    if (job.loss_chunks > 1) plan.logits->peak_whole = peak_without_chunks(spec, job, steady);
  }
  if (!image) {
    plan.closed_form = closed_form_of(spec, job, plan.parameters, plan.ledger);
    if (!job.adapts()) plan.time = step_time(spec, job);
  }
  plan.traffic = traffic_lines(network, job, result.traffic);
  plan.advice = sharding_advice(network, job, plan.steady.peak.bytes);
  plan.hugging_face = hugging_face_of(spec, job);
  if (job.device) plan.fit = fit_of(spec, job);
  return plan;
}

}  // namespace

Result<Plan> make_plan(const network::NetworkSpec& spec, const Job& job) {
  if (auto ok = network::validate(spec); !ok) return tl::unexpected(ok.error());
  if (auto ok = validate(job, spec); !ok) return tl::unexpected(ok.error());
  try {
    return job.infers() ? plan_inference(spec, job) : plan_network(spec, job);
  } catch (const OverflowError& overflow) {
    return fail("plan", overflow.what(),
                "the sizes of the model, the batch or the sequence are "
                "beyond any machine");
  }
}

}  // namespace plimsoll::plan
