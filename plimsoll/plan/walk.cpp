#include "plimsoll/plan/walk.hpp"

#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/network/rules/apply.hpp"
#include "plimsoll/network/step.hpp"
#include "plimsoll/plan/optimizer_walk.hpp"
#include "plimsoll/plan/shard_walk.hpp"

namespace plimsoll::plan {
namespace {

using network::Autograd;
using network::InputKind;
using network::Network;
using network::Operation;
using timeline::Phase;
using timeline::Tag;

// The planner's side of a training step.
class WalkBackend {
 public:
  using Tensor = network::Tensor;
  using Values = std::vector<Tensor>;

  WalkBackend(const Network& network, const Job& job, const WalkOptions& options,
              timeline::Sink& sink, WalkResult& result)
      : network_(network),
        job_(job),
        options_(options),
        recipe_(job.recipe()),
        sink_(sink),
        result_(result),
        autograd_(job.facts(), sink, options.memory) {
    autograd_.grad_mode = !job.infers();
    if (options.weights != nullptr) autograd_.weights = *options.weights;
    if (job.sharded()) shards_.emplace(autograd_, network, job, first_unit_operation(network));
  }

  // Phase "model": everything that exists before the first step.
  void allocate_model(Values& values) {
    begin_phase({Phase::kModel, 0, 0});
    allocate_parameters(values);
    for (const network::Buffer& b : network_.buffers) {
      const Tag tag = b.cache ? Tag::kKvCache : Tag::kBuffers;
      values[b.value] = autograd_.user_tensor(b.shape, b.dtype, tag, false);
    }
    for (const network::Input& i : network_.inputs) {
      values[i.value] = autograd_.user_tensor(i.shape, i.dtype, Tag::kInputs, false);
    }
    if (!job_.infers()) allocate_states();
    end_phase();
    if (recipe_.accumulator && !shards_) watch_gradients();
  }

  // What training has beside the network.
  void allocate_states() {
    accumulators_.resize(parameters_.size());
    optimizer_.emplace(autograd_, job_, parameters_, operation_id(network_.operations.size()));
    const bool states = job_.optimizer_impl == OptimizerImpl::kPlimsoll || options_.warm;
    if (states && !owns_shards()) optimizer_->allocate_states();
    if (job_.snapshot) allocate_snapshot();
    if (recipe_.loss_scaler) {
      scaler_ = autograd_.empty_strided({kLossScalerBytes}, {1}, DType::kUInt8, Tag::kOptimizer);
    }
  }

  // --- what TrainingStep asks for
  void begin_phase(timeline::PhaseKey key) {
    phase_ = key;
    autograd_.operation = 0;
    autograd_.tag = tag_of(key.phase);
    const bool first_pass = key.step == 0 && key.micro_batch == 0;
    const bool forward = key.phase == Phase::kForward || key.phase == Phase::kLoss;
    autograd_.ledger = options_.keep_ledger && first_pass && forward ? &result_.ledger : nullptr;
    sink_.begin_phase(key);
    if (!shards_) return;
    if (key.phase == Phase::kZeroGrad) shards_->begin_step();
    if (key.phase != Phase::kForward) return;
    shards_->begin_micro_batch(key.micro_batch + 1 == job_.accumulate);
    shards_->begin_forward();
  }

  void end_phase() {
    if (shards_ && phase_.phase == Phase::kForward) shards_->end_forward();
    sink_.end_phase();
    if (phase_.step != 0 || phase_.micro_batch != 0) return;
    const Phase last = job_.infers() ? Phase::kForward : Phase::kLoss;
    if (phase_.phase == last) result_.flops.forward = take_flops();
    if (phase_.phase == Phase::kBackward) {
      result_.flops.recompute = std::exchange(autograd_.recompute_flops, {});
      result_.flops.backward = take_flops();
    }
  }

  void zero_grad() {
    if (shards_) return shards_->zero_grad();
    for (const Tensor& p : parameters_) p.impl()->grad.reset();
    for (Tensor& accumulator : accumulators_) accumulator.reset();
  }

  void enter(const Operation& op) {
    const auto index = static_cast<std::size_t>(&op - network_.operations.data());
    if (shards_ && phase_.phase == Phase::kForward) shards_->enter(index);
    autograd_.operation = operation_id(index);
    if (phase_.phase != Phase::kForward) return;
    const bool logits = !op.outputs.empty() && op.outputs[0] == network_.logits;
    autograd_.tag = logits ? Tag::kLogitsAndLoss : Tag::kActivations;
  }

  bool has(const Tensor& t) const { return static_cast<bool>(t); }

  void call(const Operation& op, Values& values) {
    network::rules::apply(autograd_, op, values);
    if (!shards_) return;
    shards_->called(static_cast<std::size_t>(&op - network_.operations.data()), values);
  }

  Tensor checkpoint(const network::Region& region, std::function<Tensor(const Tensor&)> body,
                    Tensor input) {
    autograd_.operation = operation_id(region.first);
    const network::Ref<network::Frame> frame =
        autograd_.open_frame(body, input, region.keep_random_state, region.stops_early);
    Tensor out = body(input);
    autograd_.close_frame();
    return out;
  }

  void backward(const Tensor& loss, bool) { autograd_.backward(loss); }

  void finish_backward() { shards_->finish_backward(); }

  void optimizer_step() {
    if (!owns_shards()) optimizer_->step();
    if (shards_) shards_->optimizer_step();
    autograd_.tag = Tag::kActivations;
  }

  std::int32_t repeats(std::int32_t m) {
    const std::int32_t middle = job_.accumulate - 2 - m;  // behind m and before the last
    if (middle <= 0 || !options_.repeats) return 0;
    const StepTraffic before =
        std::exchange(traffic_, shards_ ? shards_->traffic() : StepTraffic{});
    if (!options_.repeats() || m == 0) return 0;
    if (shards_) shards_->repeat_traffic(before, middle);
    return middle;
  }

  // The end of the run: whoever still holds a tensor then has leaked it.
  void drop_everything(Values& values) {
    values.clear();
    optimizer_.reset();
    parameters_.clear();
    masters_.clear();
    snapshot_.reset();
    scaler_.reset();
    if (shards_) {
      result_.traffic = shards_->traffic();
      shards_->drop();
    }
    accumulators_.clear();
    result_.tensors_leaked = autograd_.tensors_alive();
  }

 private:
  static Tag tag_of(Phase phase) {
    if (phase == Phase::kLoss) return Tag::kLogitsAndLoss;
    if (phase == Phase::kBackward) return Tag::kBackward;
    return Tag::kActivations;
  }

  static timeline::OperationId first_unit_operation(const Network& network) {
    return operation_id(network.operations.size() + network.parameters.size());
  }

  // Stages 1 to 3: parameters, masters and moments are shards.
  bool owns_shards() const { return shards_ && shards_->owns_model(); }

  void allocate_parameters(Values& values) {
    if (owns_shards()) {
      shards_->allocate_model(values);
      for (const network::Parameter& p : network_.parameters) {
        parameters_.push_back(values[p.value]);
      }
      return;
    }
    autograd_.operation = operation_id(network_.operations.size());
    for (const network::Parameter& p : network_.parameters) {
      values[p.value] = autograd_.user_tensor(p.shape, p.dtype, Tag::kParameters, p.trainable);
      parameters_.push_back(values[p.value]);
      if (recipe_.master && p.trainable) {
        masters_.push_back(
            autograd_.user_tensor(p.shape, *recipe_.master, Tag::kMasterCopy, false));
      }
      ++autograd_.operation;
    }
    autograd_.operation = 0;
    if (shards_) shards_->adopt(parameters_);
  }

  void allocate_snapshot() {
    const std::int64_t bytes = snapshot_bytes(network_, job_);
    snapshot_ = autograd_.empty_strided({bytes}, {1}, DType::kUInt8, Tag::kSnapshot);
  }

  network::FlopCount take_flops() { return std::exchange(autograd_.flops, {}); }

  // A complete 16-bit gradient is added to its accumulator and freed at once.
  void watch_gradients() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) index_[parameters_[i].impl()] = i;
    autograd_.on_leaf_gradient = [this](network::TensorImpl& leaf) {
      if (!leaf.grad) return;
      Tensor& accumulator = accumulators_[index_.at(&leaf)];
      if (!accumulator) {
        accumulator = autograd_.empty_strided(leaf.shape, leaf.strides, *recipe_.accumulator,
                                              Tag::kGradients);
      }
      leaf.grad.reset();
    };
  }

  const Network& network_;
  const Job& job_;
  const WalkOptions& options_;
  const Recipe recipe_;
  timeline::Sink& sink_;
  WalkResult& result_;
  timeline::PhaseKey phase_;
  Autograd autograd_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> masters_;
  std::vector<Tensor> accumulators_;
  std::unordered_map<const network::TensorImpl*, std::size_t> index_;
  Tensor snapshot_;
  Tensor scaler_;  // the loss scaler's two numbers as one block
  std::optional<OptimizerWalk> optimizer_;
  std::optional<ShardWalk> shards_;
  StepTraffic traffic_;  // of this step up to the last border of micro-batches
};

}  // namespace

WalkResult walk(const Network& network, const Job& job, const WalkOptions& options,
                timeline::Sink& sink) {
  WalkResult result;
  WalkBackend backend(network, job, options, sink, result);
  std::vector<network::Tensor> values(network.values);
  backend.allocate_model(values);
  if (job.infers()) {
    network::InferencePass<WalkBackend> pass(network, backend, values);
    for (std::int32_t s = 0; s < options.steps; ++s) pass.run(s, [](const network::Tensor&) {});
  } else {
    const network::StepShape shape{job.accumulate, job.hold_logits, job.sharded()};
    network::TrainingStep<WalkBackend> step(network, shape, backend, values);
    for (std::int32_t s = 0; s < options.steps; ++s) step.run(s);
  }
  backend.drop_everything(values);
  return result;
}

namespace {

// Names by id, with the parameters found by value once.
class OperationNames {
 public:
  explicit OperationNames(const Network& network) : network_(network), by_value_(network.values) {
    for (const network::Parameter& p : network.parameters) by_value_[p.value] = &p;
  }

  std::string name(timeline::OperationId id) const {
    if (id == 0) return "";
    const std::size_t index = id - 1;
    if (index < network_.operations.size()) {
      const Operation& op = network_.operations[index];
      return fmt::format("{} {}", place(op), network::name(op.kind));
    }
    const std::size_t parameter = index - network_.operations.size();
    if (parameter >= network_.parameters.size()) {
      return unit_operation_names(network_).at(parameter - network_.parameters.size());
    }
    return fmt::format("optimizer {}", network_.parameters[parameter].name);
  }

 private:
  // "blocks.3.mlp.fc" of the weight that the operation reads, else where it stands.
  std::string_view place(const Operation& op) const {
    for (network::ValueId v : op.inputs) {
      if (by_value_[v] == nullptr) continue;
      const std::string_view name = by_value_[v]->name;
      return name.substr(0, name.rfind('.'));
    }
    return network_.labels[op.label];
  }

  const Network& network_;
  std::vector<const network::Parameter*> by_value_;
};

}  // namespace

std::string operation_name(const Network& network, timeline::OperationId id) {
  return OperationNames(network).name(id);
}

std::vector<std::string> operation_names(const Network& network) {
  const OperationNames names(network);
  std::vector<std::string> result;
  const std::size_t count = 1 + network.operations.size() + network.parameters.size();
  std::vector<std::string> units = unit_operation_names(network);
  result.reserve(count + units.size());
  for (std::size_t id = 0; id < count; ++id) {
    result.push_back(names.name(static_cast<timeline::OperationId>(id)));
  }
  result.insert(result.end(), units.begin(), units.end());
  return result;
}

std::int64_t snapshot_bytes(const Network& network, const Job& job) {
  return shard::snapshot_bytes(units_of(network, job.ranks).layouts, job.arithmetic());
}

timeline::Timeline walk_timeline(const Network& network, const Job& job, const WalkOptions& options,
                                 WalkResult* result) {
  timeline::Recorder recorder;
  WalkResult own = walk(network, job, options, recorder);
  recorder.timeline().operations = operation_names(network);
  if (result != nullptr) *result = std::move(own);
  return std::move(recorder.timeline());
}

}  // namespace plimsoll::plan
