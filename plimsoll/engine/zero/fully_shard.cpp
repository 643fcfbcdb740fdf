#include "plimsoll/engine/zero/fully_shard.hpp"

#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/engine/library/gradient_hooks.hpp"
#include "plimsoll/engine/library/parameter_storage.hpp"
#include "plimsoll/engine/zero/blocks.hpp"

namespace plimsoll::engine::zero {

// What a module and its wrapped blocks have in common.
struct WrappedUnit::Shared {
  // Calls of a block in one run() whose input wants a gradient: the last such gradient ends the block.
  struct Calls {
    std::int64_t all = 0;
    std::int64_t left = 0;  // in this backward pass
  };
  struct Block {
    std::string name;
    Forward forward;
    std::shared_ptr<Calls> calls = nullptr;  // of the run() that was last; null: none yet
  };

  Shared(std::shared_ptr<torch::nn::Module> m, comm::Communicator& w, const Settings& s)
      : module(std::move(m)), world(w), settings(s) {}

  std::shared_ptr<torch::nn::Module> module;
  comm::Communicator& world;
  Settings settings;
  std::vector<Block> blocks;
  std::optional<Sharder> sharder;
  std::vector<at::Tensor> refusals;  // by parameter: stands for a gradient that is sharded
  bool last_micro_batch = true;      // of the pass
  bool refused = false;              // gradients are refusals

  Sharder& started() {
    if (!sharder) {
      throw std::logic_error(
          "[zero] the module is not sharded yet, expected initialise() before the first pass");
    }
    return *sharder;
  }

  void begin_backward();
  void end_backward();
  void watch_input(const at::Tensor& input, std::size_t block);
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

// At the first event of a backward pass.
void WrappedUnit::Shared::begin_backward() {
  if (std::exchange(refused, false)) {
    for (std::size_t p = 0; p < refusals.size(); ++p) sharder->tensor(p).mutable_grad().reset();
  }
  when_backward_ends([this] { end_backward(); });
}

void WrappedUnit::Shared::watch_input(const at::Tensor& input, std::size_t block) {
  std::shared_ptr<Calls>& calls = blocks[block].calls;
  if (!calls) calls = std::make_shared<Calls>();
  ++calls->all;
  ++calls->left;
  input.register_hook([this, block, calls](const at::Tensor&) {
    if (--calls->left > 0) return;
    calls->left = calls->all;
    sharder->backward_passed(static_cast<shard::UnitIndex>(block));
  });
}

void WrappedUnit::Shared::end_backward() {
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
    shared_->watch_input(input, block_);
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

// Sixteen bits hold no update that is smaller than 1/256 of the weight, so a rate of 1e-4 changes
// nothing, for ever and without a sign of it.
void refuse_lost_updates(const std::string& name, const at::Tensor& tensor,
                         const Settings& settings) {
  const at::ScalarType type = settings.compute.value_or(tensor.scalar_type());
  if (settings.master || settings.narrow_masters || !tensor.requires_grad()) return;
  if (!tensor.is_floating_point() || c10::elementSize(type) > 2) return;
  throw std::invalid_argument(fmt::format(
      "[zero] parameter '{}': {} without a master, expected one, since small updates of "
      "it are lost. Hint: Settings::master = at::kFloat, or narrow_masters = true",
      name, c10::toString(type)));
}

// Two tensors over one memory would become two parameters, of which one is never trained.
void refuse_shared_memory(const ShardedModel& model) {
  std::unordered_map<const void*, std::size_t> first;  // by start of the memory
  for (std::size_t p = 0; p < model.tensors.size(); ++p) {
    const at::Tensor& tensor = model.tensors[p];
    if (tensor.is_meta() || tensor.numel() == 0) continue;
    const auto [seen, fresh] = first.emplace(tensor.const_data_ptr(), p);
    if (fresh || model.tensors[seen->second].is_same(tensor)) continue;
    throw std::invalid_argument(
        fmt::format("[zero] parameters '{}' and '{}' are two tensors over one memory, expected one "
                    "tensor or two memories. Hint: tie them by registering the same tensor twice",
                    model.parameters[seen->second].name, model.parameters[p].name));
  }
}

// Parameters of modules in the order of their names; a tied tensor under each of its names.
ShardedModel model_of(const torch::nn::Module& module, const std::vector<std::string>& blocks,
                      const Settings& settings) {
  ShardedModel model;
  for (const auto& item : module.named_parameters()) {
    refuse_lost_updates(item.key(), item.value(), settings);
    model.parameters.push_back(described(item.key(), item.value(), settings));
    model.tensors.push_back(item.value());
  }
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined()) model.buffers.push_back({item.key(), item.value()});
  }
  auto units = shard::group_by_blocks(model.parameters, blocks);
  if (!units) throw std::invalid_argument(format_error(units.error()));
  refuse_shared_memory(model);
  model.units = std::move(*units);
  return model;
}

std::string without_values(const char* what, const std::string& name) {
  return fmt::format(
      "[zero] {} '{}' is on the meta device, expected values. Hint: initialise(fill)", what, name);
}

// Buffers of rank 0; those on the meta device get memory first.
void share_buffers(const Sharder& sharder, comm::Communicator& world,
                   const ShardedModule::Fill& fill) {
  for (const auto& [name, buffer] : sharder.buffers()) {
    if (buffer.numel() == 0) continue;
    if (buffer.is_meta()) {
      if (!fill) throw std::invalid_argument(without_values("buffer", name));
      const at::Tensor real = at::empty(buffer.sizes(), buffer.options().device(at::kCPU));
      place_parameter(buffer, real.storage(), 0, real.scalar_type());
      fill(name, buffer);
    }
    const at::NoGradGuard no_grad;
    const at::Tensor flat = buffer.contiguous();
    world.broadcast(view_of(flat), 0, {name}).wait();
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
  const auto values = [&](std::size_t p, const at::Tensor& placed) -> at::Tensor {
    if (!tensors[p].is_meta()) return tensors[p].detach().contiguous();
    if (!fill) throw std::invalid_argument(without_values("parameter", parameters[p].name));
    if (placed.scalar_type() == tensors[p].scalar_type()) {
      fill(parameters[p].name, placed);
      return {};
    }
    const at::Tensor made =
        at::empty(tensors[p].sizes(), at::TensorOptions().dtype(tensors[p].dtype()));
    fill(parameters[p].name, made);
    return made;
  };
  s.sharder.emplace(std::move(model), s.settings, s.world, values);
  s.sharder->when_pass_begins([shared = shared_.get()] { shared->begin_backward(); });
  share_buffers(*s.sharder, s.world, fill);
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
  for (WrappedUnit::Shared::Block& block : s.blocks) block.calls = nullptr;
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
    loss.register_hook([shared = shared_.get()](const at::Tensor&) {
      shared->sharder->backward_begins(shared->sharder->root());
    });
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
