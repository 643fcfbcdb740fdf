#include "plimsoll/engine/zero/fully_shard.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/engine/library/gradient_hooks.hpp"
#include "plimsoll/engine/library/parameter_storage.hpp"
#include "plimsoll/engine/zero/blocks.hpp"

namespace plimsoll::engine::zero {

// What a module and its wrapped blocks have in common.
struct WrappedUnit::Shared {
  struct Block {
    std::string name;
    Forward forward;
  };

  Shared(std::shared_ptr<torch::nn::Module> m, comm::Communicator& w, const Settings& s)
      : module(std::move(m)), world(w), settings(s) {}

  std::shared_ptr<torch::nn::Module> module;
  comm::Communicator& world;
  Settings settings;
  std::vector<Block> blocks;
  std::optional<Sharder> sharder;
  std::vector<at::Tensor> refusals;  // by parameter: stands for a gradient that is sharded
  bool ending_queued = false;        // backward_ends() is called when this pass is over
  bool last_micro_batch = true;      // of the pass
  bool refused = false;              // gradients are refusals

  Sharder& started() {
    if (!sharder) {
      throw std::logic_error(
          "[zero] the module is not sharded yet, expected initialise() before the first pass");
    }
    return *sharder;
  }

  void backward_of_root();
  void end_backward();
  // Whether the pass that ends has summed gradients over ranks.
  bool reduces() const {
    return shard::shards(settings.stage, world.size()) &&
           (settings.reduce_each || last_micro_batch);
  }
};

namespace {

shard::Pass current_pass() {
  return at::GradMode::is_enabled() ? shard::Pass::kTraining : shard::Pass::kEvaluation;
}

shard::Parameter described(const std::string& name, const at::Tensor& tensor,
                           const Settings& settings) {
  shard::Parameter result;
  result.name = name;
  result.shape = tensor.sizes().vec();
  const bool converted = settings.compute && tensor.is_floating_point();
  const at::ScalarType type = converted ? *settings.compute : tensor.scalar_type();
  wire_type(type);
  result.type = {static_cast<std::int32_t>(type),
                 static_cast<std::int64_t>(c10::elementSize(type))};
  result.trainable = tensor.requires_grad();
  result.identity = reinterpret_cast<std::uint64_t>(tensor.unsafeGetTensorImpl());
  return result;
}

// Stands for the gradient of a sharded parameter: whoever reads it is told what to do.
at::Tensor refusal(const at::Tensor& parameter, const std::string& unit) {
  const std::int64_t bytes =
      parameter.numel() * static_cast<std::int64_t>(parameter.element_size());
  const at::Storage storage = make_storage(at::DataPtr(nullptr, parameter.device()), bytes);
  at::Tensor result = tensor_in(storage, 0, parameter.sizes(), parameter.scalar_type());
  free_storage(storage, fmt::format("[zero] the gradient of a parameter of unit '{}' is sharded, "
                                    "expected to be read by plimsoll's ShardOptimizer alone. Hint: "
                                    "a stock optimizer cannot step a sharded module",
                                    unit));
  return result;
}

}  // namespace

// --- backward -----------------------------------------------------------------------------------

// The first thing that happens in a backward pass.
void WrappedUnit::Shared::backward_of_root() {
  Sharder& s = *sharder;
  if (!std::exchange(ending_queued, true)) {
    if (std::exchange(refused, false)) {
      for (std::size_t p = 0; p < refusals.size(); ++p) s.tensor(p).mutable_grad().reset();
    }
    when_backward_ends([this] { end_backward(); });
  }
  s.backward_begins(s.root());
}

void WrappedUnit::Shared::end_backward() {
  ending_queued = false;
  sharder->backward_ends();
  if (!reduces()) return;
  refused = true;
  for (std::size_t p = 0; p < refusals.size(); ++p) {
    if (refusals[p].defined()) sharder->tensor(p).mutable_grad() = refusals[p];
  }
}

at::Tensor WrappedUnit::operator()(const at::Tensor& input) const {
  Sharder& sharder = shared_->started();
  const auto u = static_cast<shard::UnitIndex>(block_);
  const bool rerun = sharder.schedule().in_backward();
  sharder.forward_begins(u, current_pass());
  if (!rerun && input.requires_grad() && at::GradMode::is_enabled()) {
    input.register_hook(
        [shared = shared_.get(), u](const at::Tensor&) { shared->sharder->backward_passed(u); });
  }
  at::Tensor output = shared_->blocks[block_].forward(input);
  if (!rerun && output.requires_grad()) {
    output.register_hook(
        [shared = shared_.get(), u](const at::Tensor&) { shared->sharder->backward_begins(u); });
  }
  sharder.forward_ends(u);
  return output;
}

// --- the module ---------------------------------------------------------------------------------

ShardedModule::ShardedModule(std::shared_ptr<torch::nn::Module> module, comm::Communicator& world,
                             const Settings& settings)
    : shared_(std::make_shared<WrappedUnit::Shared>(std::move(module), world, settings)) {}

WrappedUnit ShardedModule::wrap(std::shared_ptr<torch::nn::Module> block,
                                WrappedUnit::Forward forward) {
  if (shared_->sharder) {
    throw std::invalid_argument("[zero] wrap() after initialise(), expected before it");
  }
  std::string name;
  for (const auto& item : shared_->module->named_modules("", false)) {
    if (item.value() == block) name = item.key();
  }
  if (name.empty()) {
    throw std::invalid_argument(
        "[zero] the block is not a part of the module, expected a registered submodule. Hint: the "
        "root needs no wrap()");
  }
  for (const WrappedUnit::Shared::Block& other : shared_->blocks) {
    if (other.name != name) continue;
    throw std::invalid_argument(
        fmt::format("[zero] the block '{}' is wrapped twice, expected once", name));
  }
  shared_->blocks.push_back({name, std::move(forward)});
  return WrappedUnit(shared_, shared_->blocks.size() - 1);
}

namespace {

// Parameters of modules in the order of their names; a tied tensor under each of its names.
ShardedModel model_of(const torch::nn::Module& module, const std::vector<std::string>& blocks,
                      const Settings& settings) {
  ShardedModel model;
  for (const auto& item : module.named_parameters()) {
    model.parameters.push_back(described(item.key(), item.value(), settings));
    model.tensors.push_back(item.value());
  }
  auto units = shard::group_by_blocks(model.parameters, blocks);
  if (!units) throw std::invalid_argument(format_error(units.error()));
  model.units = std::move(*units);
  return model;
}

// Buffers of rank 0; those on the meta device get memory first.
void share_buffers(torch::nn::Module& module, comm::Communicator& world,
                   const ShardedModule::Fill& fill) {
  for (const auto& item : module.named_buffers()) {
    const at::Tensor& buffer = item.value();
    if (!buffer.defined() || buffer.numel() == 0) continue;
    if (buffer.is_meta() && fill) {
      const at::Tensor real = at::empty(buffer.sizes(), buffer.options().device(at::kCPU));
      place_parameter(buffer, real.storage(), 0, real.scalar_type());
      fill(item.key(), buffer);
    }
    const at::NoGradGuard no_grad;
    const at::Tensor flat = buffer.contiguous();
    world.broadcast(view_of(flat), 0, {item.key()}).wait();
    if (!flat.is_same(buffer)) buffer.copy_(flat);
  }
}

}  // namespace

void ShardedModule::initialise(const Fill& fill) {
  WrappedUnit::Shared& s = *shared_;
  if (s.sharder) throw std::invalid_argument("[zero] initialise() twice, expected once");
  std::vector<std::string> names;
  for (const WrappedUnit::Shared::Block& block : s.blocks) names.push_back(block.name);
  ShardedModel model = model_of(*s.module, names, s.settings);
  const std::vector<shard::Parameter> parameters = model.parameters;
  const std::vector<at::Tensor> tensors = model.tensors;
  const auto values = [&](std::size_t p, const at::Tensor&) {
    if (!tensors[p].is_meta()) return tensors[p].detach().contiguous().clone();
    if (!fill) {
      throw std::invalid_argument(fmt::format(
          "[zero] parameter '{}' is on the meta device, expected values. Hint: initialise(fill)",
          parameters[p].name));
    }
    const at::Tensor made =
        at::empty(tensors[p].sizes(), at::TensorOptions().dtype(tensors[p].dtype()));
    fill(parameters[p].name, made);
    return made;
  };
  s.sharder.emplace(std::move(model), s.settings, s.world, values);
  share_buffers(*s.module, s.world, fill);
  s.refusals.resize(tensors.size());
  for (std::size_t p = 0; p < tensors.size(); ++p) {
    if (!parameters[p].trainable) continue;
    s.refusals[p] =
        refusal(tensors[p], s.sharder->units().units[s.sharder->units().unit_of[p]].name);
  }
}

at::Tensor ShardedModule::run(const std::function<at::Tensor()>& forward, bool last_micro_batch) {
  WrappedUnit::Shared& s = *shared_;
  Sharder& sharder = s.started();
  if (sharder.schedule().in_backward()) sharder.abandon();  // the pass before ended by an exception
  s.ending_queued = false;
  s.last_micro_batch = last_micro_batch;
  sharder.begin_micro_batch(last_micro_batch);
  sharder.forward_begins(sharder.root(), current_pass());
  at::Tensor loss;
  try {
    loss = forward();
  } catch (...) {
    sharder.abandon();
    throw;
  }
  if (loss.requires_grad()) {
    loss.register_hook([shared = shared_.get()](const at::Tensor&) { shared->backward_of_root(); });
  }
  sharder.forward_ends(sharder.root());
  return loss;
}

void ShardedModule::zero_grad() { shared_->started().zero_grad(); }
void ShardedModule::gather() { shared_->started().gather_everything(); }
void ShardedModule::release() { shared_->started().release_everything(); }
Sharder& ShardedModule::sharder() { return shared_->started(); }
comm::Communicator& ShardedModule::world() const { return shared_->world; }

at::Tensor ShardedModule::gradient(const std::string& name, std::int32_t micro_batches) {
  Sharder& sharder = shared_->started();
  for (std::size_t p = 0; p < sharder.parameters().size(); ++p) {
    if (sharder.parameters()[p].name != name) continue;
    const at::Tensor sum = sharder.gathered_sum(p);
    if (!sum.defined()) return sum;
    return sum.div(static_cast<double>(shared_->world.size()) * micro_batches);
  }
  throw std::invalid_argument(fmt::format("[zero] no parameter '{}' in the module", name));
}

}  // namespace plimsoll::engine::zero
