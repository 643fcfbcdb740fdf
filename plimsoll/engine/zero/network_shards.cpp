#include "plimsoll/engine/zero/network_shards.hpp"

#include <utility>

#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/engine/library/parameter_storage.hpp"
#include "plimsoll/engine/run/initial_values.hpp"
#include "plimsoll/engine/run/library_calls.hpp"

namespace plimsoll::engine::zero {

using shard::UnitIndex;
using timeline::Tag;

Settings settings_of(const plan::Job& job) {
  const plan::Recipe recipe = job.recipe();
  Settings settings;
  settings.stage = job.stage;
  settings.prefetch = job.prefetch;
  settings.reshard_root = job.reshard_root;
  settings.reduce_each = job.reduce_each;
  settings.accumulate_wide = recipe.accumulator.has_value();
  if (recipe.master) settings.master = scalar_type(*recipe.master);
  settings.moment = scalar_type(recipe.state);
  settings.moments = plan::moments(job.optimizer);
  return settings;
}

NetworkShards::NetworkShards(const network::Network& network, const plan::Job& job,
                             const OptimizerSettings& optimizer, at::Device device,
                             std::uint64_t seed, comm::Communicator& world, Meter* meter,
                             std::vector<at::Tensor>& values)
    : network_(network),
      stage_(job.stage),
      units_(plan::units_of(network, world.size())),
      borders_(plan::borders_of(network, static_cast<UnitIndex>(units_.units.root()))) {
  const auto fill = [&](std::size_t p, const at::Tensor& placed) {
    fill_parameter(network.parameters[p], seed, placed);
    return at::Tensor();
  };
  Settings settings = settings_of(job);
  settings.device = device;
  sharder_.emplace(model_of(device, seed, values), settings, world, fill, meter);
  optimizer_.emplace(*sharder_, job.optimizer, optimizer);
}

namespace {

// A parameter without memory, until the sharder places it.
at::Tensor unplaced(const network::Parameter& parameter, at::Device device) {
  const std::int64_t bytes = element_count(parameter.shape) * network::size_of(parameter.dtype);
  const at::Storage storage = make_storage(at::DataPtr(nullptr, device), bytes);
  return tensor_in(storage, 0, sizes(parameter.shape), scalar_type(parameter.dtype));
}

}  // namespace

// At stage 0 parameters have memory of their own.
ShardedModel NetworkShards::model_of(at::Device device, std::uint64_t seed,
                                     std::vector<at::Tensor>& values) {
  ShardedModel model;
  model.units = units_.units;
  model.order = plan::order_of(network_);
  model.parameters = units_.parameters;
  for (std::size_t p = 0; p < network_.parameters.size(); ++p) {
    const network::Parameter& parameter = network_.parameters[p];
    const at::ScalarType type = scalar_type(parameter.dtype);
    model.parameters[p].type.code = static_cast<std::int32_t>(type);
    at::Tensor& value = values[parameter.value];
    value = stage_ == shard::Stage::kNothing ? initial_parameter(parameter, device, seed)
                                             : unplaced(parameter, device);
    value.requires_grad_(parameter.trainable);
    model.tensors.push_back(value);
  }
  return model;
}

// --- forward ------------------------------------------------------------------------------------

void NetworkShards::begin_forward(shard::Pass pass) {
  pass_ = pass;
  current_ = -1;
  sharder_->forward_begins(sharder_->root(), pass);
}

void NetworkShards::enter(std::size_t operation) {
  const UnitIndex unit = borders_[operation].unit;
  const UnitIndex layer = unit == sharder_->root() ? -1 : unit;
  if (layer == current_) return;
  if (current_ >= 0) sharder_->forward_ends(current_);
  current_ = layer;
  if (layer >= 0) sharder_->forward_begins(layer, pass_);
}

// Hangs a hook on a result that crosses a border.
void NetworkShards::called(std::size_t operation, const std::vector<at::Tensor>& values) {
  if (!borders_[operation].watched()) return;
  for (network::ValueId v : network_.operations[operation].outputs) {
    if (!values[v].defined() || !values[v].requires_grad()) continue;
    values[v].register_hook([this, operation](const at::Tensor&) { gradient_border(operation); });
  }
}

void NetworkShards::end_forward() {
  if (current_ >= 0) sharder_->forward_ends(std::exchange(current_, -1));
  sharder_->forward_ends(sharder_->root());
}

void NetworkShards::gradient_border(std::size_t operation) {
  const plan::Border& border = borders_[operation];
  for (UnitIndex passed : border.passes) sharder_->backward_passed(passed);
  if (border.begins >= 0) sharder_->backward_begins(border.begins);
}

}  // namespace plimsoll::engine::zero
