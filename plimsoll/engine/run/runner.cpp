#include "plimsoll/engine/run/runner.hpp"

#include <cmath>
#include <optional>
#include <stdexcept>

#include "plimsoll/engine/run/checkpoint.hpp"
#include "plimsoll/engine/run/gradient_accumulator.hpp"
#include "plimsoll/engine/run/initial_values.hpp"
#include "plimsoll/engine/run/library_calls.hpp"
#include "plimsoll/engine/zero/network_shards.hpp"
#include "plimsoll/network/step.hpp"
#include "plimsoll/plan/walk.hpp"

namespace plimsoll::engine {

using network::Network;
using network::Operation;
using timeline::Phase;
using timeline::Tag;

// The engine's side of a training step.
class Runner::Backend {
 public:
  using Tensor = at::Tensor;
  using Values = std::vector<at::Tensor>;

  Backend(const Network& network, const plan::Job& job, const RunnerOptions& options)
      : network_(network),
        job_(job),
        options_(options),
        recipe_(job.recipe()),
        values_(network.values) {
    if (options.meter != nullptr) names_ = plan::operation_names(network);
    if (has_shards()) {
      check(options.world != nullptr && options.world->size() == job.ranks,
            "a sharded job needs its ranks");
    }
    begin_phase({Phase::kModel, 0, 0});
    at::manual_seed(options.seed + (options.world == nullptr ? 0U : rank_seed()));
    allocate();
    if (!shards_ && !job.infers()) {
      optimizer_ = make_optimizer(optimized_, job, options.optimizer);
    }
    if (job.snapshot) allocate_snapshot();
    end_phase();
    if (recipe_.accumulator && !shards_) {
      accumulate_gradients(optimized_, scalar_type(*recipe_.accumulator));
    }
    const network::StepShape shape{job.accumulate, job.hold_logits, has_shards()};
    step_.emplace(network, shape, *this, values_);
  }

  double run_step() {
    loss_sum_ = 0;
    step_->run(steps_++);
    return loss_sum_;
  }

  at::Tensor infer() {
    const at::NoGradGuard no_grad;
    at::Tensor logits;
    network::InferencePass<Backend> pass(network_, *this, values_);
    pass.run(steps_++, [&](const at::Tensor& result) { logits = result; });
    return logits;
  }

  at::Tensor forward_loss() {
    execution_.emplace(network_, *this, values_);
    execution_->run(0, network_.operations.size());
    execution_->drop_kept();
    if (!job_.hold_logits) values_[network_.logits].reset();
    return values_[network_.loss];
  }

  double evaluate(const std::function<void()>& fill_inputs) {
    pass_ = Pass::kEvaluating;
    return run_forward(fill_inputs);
  }

  at::Tensor logits(const std::function<void()>& fill_inputs) {
    check(job_.hold_logits && job_.loss_chunks == 1, "logits that the run does not hold");
    pass_ = Pass::kEvaluating;
    at::Tensor result;
    run_forward(fill_inputs, &result);
    return result;
  }

  std::optional<std::size_t> first_not_finite(const std::function<void()>& fill_inputs) {
    pass_ = Pass::kChecking;
    not_finite_.reset();
    run_forward(fill_inputs);
    return not_finite_;
  }

  double run_forward(const std::function<void()>& fill_inputs, at::Tensor* logits = nullptr) {
    const at::NoGradGuard no_grad;
    phase_ = {Phase::kForward, steps_, 0};
    fill_inputs();
    if (shards_) {
      shards_->begin_micro_batch(true);
      shards_->begin_forward(shard::Pass::kEvaluation);
    }
    const double loss = forward_loss().item<double>();
    if (shards_) shards_->end_forward();
    if (logits != nullptr) *logits = values_[network_.logits];
    values_[network_.logits].reset();
    values_[network_.loss].reset();
    tag_.reset();
    pass_ = Pass::kTraining;
    return loss;
  }

  // --- what TrainingStep asks for
  void begin_phase(timeline::PhaseKey key) {
    phase_ = key;
    tag_.reset();
    tag_.emplace(tag_of(key.phase));
    if (key.phase == Phase::kForward && fill) fill(key.micro_batch);
    if (options_.meter != nullptr) {
      options_.meter->operation("");
      options_.meter->begin_phase(key);
    }
    begin_shards(key);
  }

  // Inside the phase that has begun: units are gathered and released there.
  void begin_shards(timeline::PhaseKey key) {
    if (!shards_ || key.phase != Phase::kForward) return;
    shards_->begin_micro_batch(key.micro_batch + 1 == job_.accumulate);
    shards_->begin_forward();
  }

  void end_phase() {
    if (shards_ && phase_.phase == Phase::kForward) shards_->end_forward();
    if (options_.meter != nullptr) options_.meter->end_phase();
    tag_.reset();
  }

  void zero_grad() {
    if (shards_) return shards_->zero_grad();
    for (OptimizedParameter& p : optimized_) {
      p.parameter.mutable_grad().reset();
      p.accumulator.reset();
    }
  }

  bool has(const Tensor& t) const { return t.defined(); }

  void enter(const Operation& op) {
    const auto index = static_cast<std::size_t>(&op - network_.operations.data());
    if (shards_ && phase_.phase == Phase::kForward) shards_->enter(index);
    if (options_.meter == nullptr) return;
    options_.meter->operation(names_[plan::operation_id(index)]);
    if (phase_.phase != Phase::kForward) return;
    const bool logits = !op.outputs.empty() && op.outputs[0] == network_.logits;
    tag_.reset();
    tag_.emplace(logits ? Tag::kLogitsAndLoss : Tag::kActivations);
  }

  void call(const Operation& op, Values& values) {
    if (pass_ == Pass::kEvaluating) {
      call_without_dropout(op, values);
    } else {
      engine::call(op, values, options_.device);
    }
    const auto index = static_cast<std::size_t>(&op - network_.operations.data());
    if (pass_ == Pass::kChecking) check_finite(index);
    if (shards_) shards_->called(index, values);
  }

  Tensor checkpoint(const network::Region& region, RegionBody body, Tensor input) {
    return engine::checkpoint(std::move(body), std::move(input), region.keep_random_state,
                              region.stops_early);
  }

  void backward(const Tensor& loss, bool) {
    loss.backward();
    if (options_.meter != nullptr) {
      for (const OptimizedParameter& p : optimized_) retag(p.parameter.grad(), Tag::kGradients);
    }
    if (!loss.is_meta()) loss_sum_ += loss.item<double>();
  }

  void optimizer_step() {
    if (!shards_) return optimizer_->step();
    zero::StepOptions options;
    options.micro_batches = job_.accumulate;
    options.clip = clip.value_or(0);
    options.norm = clip.has_value();
    options.skip_not_finite = skips_not_finite;
    report_ = shards_->optimizer_step(options);
  }

  void finish_backward() { shards_->finish_backward(); }

  zero::NetworkShards* shards() { return shards_ ? &*shards_ : nullptr; }

  const Network& network() const { return network_; }
  const Values& values() const { return values_; }
  const std::vector<OptimizedParameter>& parameters() const { return optimized_; }

  const zero::StepReport& report() const { return report_; }
  const at::Tensor& snapshot() const { return snapshot_; }

  std::function<void(int)> fill;
  bool skips_not_finite = false;
  std::optional<double> clip;  // set: the norm is wanted, and 0 is no limit

 private:
  enum class Pass { kTraining, kEvaluating, kChecking };

  bool has_shards() const { return job_.sharded() || options_.always_shards; }

  static Tag tag_of(Phase phase) {
    if (phase == Phase::kLoss) return Tag::kLogitsAndLoss;
    if (phase == Phase::kBackward) return Tag::kBackward;
    if (phase == Phase::kOptimizer) return Tag::kWorkspace;
    return Tag::kActivations;
  }

  void call_without_dropout(const Operation& op, Values& values) {
    if (op.kind == network::OpKind::kDropout) {
      values[op.outputs[0]] = values[op.inputs[0]];
      return;
    }
    if (op.kind != network::OpKind::kAttention) return engine::call(op, values, options_.device);
    Operation quiet = op;
    quiet.attributes.number = 0;  // of dropped weights
    engine::call(quiet, values, options_.device);
  }

  // Minus infinity is what masks put where nothing is to be seen.
  void check_finite(std::size_t operation) {
    if (not_finite_) return;
    for (network::ValueId v : network_.operations[operation].outputs) {
      const at::Tensor& value = values_[v];
      if (!value.defined() || !value.is_floating_point()) continue;
      if (value.isnan().logical_or(value.isposinf()).any().item<bool>()) not_finite_ = operation;
    }
  }

  void allocate_snapshot() {
    const TagScope tag(Tag::kSnapshot);
    snapshot_ = at::empty({plan::snapshot_bytes(network_, job_)},
                          at::TensorOptions().dtype(at::kByte).device(options_.device));
  }

  // Ranks draw different tokens and dropout masks.
  std::uint64_t rank_seed() const {
    return static_cast<std::uint64_t>(options_.world->rank()) * 0x9e3779b97f4a7c15U;
  }

  void allocate_parameters() {
    if (has_shards()) {
      shards_.emplace(network_, job_, options_.optimizer, options_.device, options_.seed,
                      *options_.world, options_.meter, values_);
      return;
    }
    for (const network::Parameter& p : network_.parameters) {
      values_[p.value] = initial_parameter(p, options_.device, options_.seed);
      if (!p.trainable || job_.infers()) continue;
      values_[p.value].requires_grad_(true);
      OptimizedParameter optimized{values_[p.value], {}, {}};
      if (recipe_.master) {
        const TagScope tag(Tag::kMasterCopy);
        optimized.master = values_[p.value].detach().to(scalar_type(*recipe_.master));
      }
      optimized_.push_back(std::move(optimized));
    }
  }

  void allocate() {
    allocate_parameters();
    for (const network::Buffer& b : network_.buffers) {
      values_[b.value] = initial_buffer(b, options_.device);
    }
    for (const network::Input& i : network_.inputs) {
      values_[i.value] = initial_input(i, network_, options_.device);
    }
  }

  const Network& network_;
  const plan::Job& job_;
  const RunnerOptions options_;
  const plan::Recipe recipe_;
  std::vector<std::string> names_;
  timeline::PhaseKey phase_;
  std::optional<TagScope> tag_;
  Values values_;
  std::vector<OptimizedParameter> optimized_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<zero::NetworkShards> shards_;
  std::optional<network::TrainingStep<Backend>> step_;
  std::optional<network::Execution<Backend>> execution_;  // of forward_loss; reruns use it
  std::int32_t steps_ = 0;
  double loss_sum_ = 0;
  zero::StepReport report_;
  at::Tensor snapshot_;
  Pass pass_ = Pass::kTraining;
  std::optional<std::size_t> not_finite_;
};

Runner::Runner(const Network& network, const plan::Job& job, const RunnerOptions& options)
    : backend_(std::make_unique<Backend>(network, job, options)) {}
Runner::~Runner() = default;

at::Tensor Runner::infer() { return backend_->infer(); }

double Runner::step(const std::function<void(int)>& fill) {
  backend_->fill = fill;
  return backend_->run_step();
}

at::Tensor Runner::forward_loss() { return backend_->forward_loss(); }

double Runner::evaluate(const std::function<void()>& fill) { return backend_->evaluate(fill); }

at::Tensor Runner::logits(const std::function<void()>& fill) { return backend_->logits(fill); }

void Runner::set_clip(double most) { backend_->clip = most; }
double Runner::clipped_norm() const { return backend_->report().gradient_norm; }
void Runner::skip_not_finite() { backend_->skips_not_finite = true; }
bool Runner::updated() const { return backend_->report().updated; }

std::optional<std::size_t> Runner::first_not_finite(const std::function<void()>& fill) {
  return backend_->first_not_finite(fill);
}

at::Tensor Runner::snapshot() const { return backend_->snapshot(); }

at::Tensor Runner::parameter(std::string_view name) const {
  for (const network::Parameter& p : backend_->network().parameters) {
    if (p.name == name) return backend_->values()[p.value];
  }
  throw std::out_of_range("no parameter " + std::string(name));
}

at::Tensor Runner::input(network::InputKind kind) const {
  for (const network::Input& i : backend_->network().inputs) {
    if (i.kind == kind) return backend_->values()[i.value];
  }
  throw std::out_of_range("no such input");
}

at::Tensor Runner::cache(std::string_view name) const {
  for (const network::Buffer& b : backend_->network().buffers) {
    if (b.cache && b.name == name) return backend_->values()[b.value];
  }
  throw std::out_of_range("no cache " + std::string(name));
}

zero::NetworkShards* Runner::shards() { return backend_->shards(); }

const Network& Runner::network() const { return backend_->network(); }

double Runner::gradient_norm() const {
  double squares = 0;
  for (const OptimizedParameter& p : backend_->parameters()) {
    const at::Tensor g = p.accumulator.defined() ? p.accumulator : p.parameter.grad();
    if (g.defined()) squares += g.to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(squares);
}

}  // namespace plimsoll::engine
