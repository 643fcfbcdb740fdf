#include "plimsoll/plan/shard_walk.hpp"

#include <utility>

#include <fmt/format.h>

namespace plimsoll::plan {

using network::Tensor;
using shard::Action;
using shard::ActionKind;
using shard::Stage;
using timeline::Tag;

namespace {

std::vector<std::int64_t> trainable_parameters(const NetworkUnits& units) {
  std::vector<std::int64_t> counts;
  for (const shard::Unit& unit : units.units.units) {
    std::int64_t count = 0;
    for (std::size_t i : unit.parameters) count += units.parameters[i].trainable ? 1 : 0;
    counts.push_back(count);
  }
  return counts;
}

}  // namespace

ShardWalk::ShardWalk(network::Autograd& autograd, const network::Network& network, const Job& job,
                     timeline::OperationId first_operation)
    : a_(autograd),
      network_(network),
      job_(job),
      first_operation_(first_operation),
      units_(units_of(network, job.ranks)),
      borders_(borders_of(network, static_cast<shard::UnitIndex>(units_.units.root()))),
      arithmetic_(job.arithmetic()),
      schedule_(traits_of(units_), job.schedule_options(), order_of(network)),
      parameters_(network.parameters.size()),
      accumulators_(network.parameters.size()),
      storages_(units_.layouts.size()),
      trainable_(trainable_parameters(units_)),
      missing_(trainable_) {
  for (const shard::UnitLayout& layout : units_.layouts) {
    sums_.emplace_back(layout.groups().size());
  }
}

// --- the model ----------------------------------------------------------------------------------

Tensor ShardWalk::block(std::int64_t bytes, Tag tag) {
  return a_.empty_strided({bytes}, {1}, DType::kUInt8, tag);
}

void ShardWalk::allocate_model(std::vector<Tensor>& values) {
  for (std::size_t u = 0; u < units_.layouts.size(); ++u) {
    a_.operation = first_operation_ + static_cast<timeline::OperationId>(u);
    place_parameters(u, values);
    allocate_shards(u);  // filled from the unit's storage
    if (job_.stage == Stage::kParameters) a_.free_storage(storages_[u].storage());
  }
  a_.operation = 0;
  watch();
}

void ShardWalk::place_parameters(std::size_t unit, std::vector<Tensor>& values) {
  storages_[unit] = block(units_.layouts[unit].storage_bytes(), Tag::kParameters);
  for (std::size_t i : units_.units.units[unit].parameters) {
    const network::Parameter& p = network_.parameters[i];
    parameters_[i] = a_.user_tensor_in(storages_[unit], p.shape, p.dtype, p.trainable);
    values[p.value] = parameters_[i];
  }
}

void ShardWalk::allocate_shards(std::size_t unit) {
  for (const shard::Group& group : units_.layouts[unit].groups()) {
    const std::int64_t chunk = group.partition().chunk();
    const auto add = [&](std::int64_t each, Tag tag) {
      if (each > 0) shards_.push_back(block(checked_mul(chunk, each), tag));
    };
    if (group.trainable()) add(arithmetic_.master, Tag::kMasterCopy);
    const bool has_master = group.trainable() && arithmetic_.master > 0;
    if (job_.stage == Stage::kParameters && !has_master) {
      add(group.type().bytes, Tag::kParameters);
    }
    if (!group.trainable()) continue;
    for (int m = 0; m < arithmetic_.moments; ++m) add(arithmetic_.moment, Tag::kOptimizer);
  }
}

void ShardWalk::adopt(const std::vector<Tensor>& parameters) {
  parameters_ = parameters;
  watch();
}

void ShardWalk::watch() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) index_[parameters_[i].impl()] = i;
  a_.on_leaf_gradient = [this](network::TensorImpl& leaf) { gradient_arrived(leaf); };
  a_.on_watched_node = [this](std::int32_t operation) { gradient_border(operation); };
}

void ShardWalk::drop() {
  parameters_.clear();
  accumulators_.clear();
  storages_.clear();
  shards_.clear();
  sums_.clear();
}

// --- forward ------------------------------------------------------------------------------------

void ShardWalk::begin_step() { traffic_ = {}; }

void ShardWalk::repeat_traffic(const StepTraffic& before, std::int32_t times) {
  const auto repeat = [times](CollectiveCount& now, const CollectiveCount& was) {
    now.units += times * (now.units - was.units);
    now.bytes = checked_add(now.bytes, checked_mul(times, now.bytes - was.bytes));
  };
  repeat(traffic_.gathers, before.gathers);
  repeat(traffic_.reductions, before.reductions);
  repeat(traffic_.updates, before.updates);
}

void ShardWalk::begin_forward() {
  current_ = -1;
  carry_out(schedule_.forward_begins(static_cast<shard::UnitIndex>(units_.units.root())));
}

void ShardWalk::enter(std::size_t operation) {
  const auto root = static_cast<shard::UnitIndex>(units_.units.root());
  const shard::UnitIndex unit = borders_[operation].unit;
  const shard::UnitIndex layer = unit == root ? -1 : unit;
  if (layer == current_) return;
  if (current_ >= 0) carry_out(schedule_.forward_ends(current_));
  current_ = layer;
  if (layer >= 0) carry_out(schedule_.forward_begins(layer));
}

// Hangs a watch on the node of a result that crosses a border.
void ShardWalk::called(std::size_t operation, const std::vector<Tensor>& values) {
  if (!borders_[operation].watched()) return;
  for (network::ValueId v : network_.operations[operation].outputs) {
    if (!values[v] || !values[v].impl()->node) continue;
    values[v].impl()->node->watch = static_cast<std::int32_t>(operation);
  }
}

void ShardWalk::end_forward() {
  if (current_ >= 0) carry_out(schedule_.forward_ends(std::exchange(current_, -1)));
  carry_out(schedule_.forward_ends(static_cast<shard::UnitIndex>(units_.units.root())));
}

// --- backward -----------------------------------------------------------------------------------

void ShardWalk::gradient_border(std::int32_t operation) {
  const Border& border = borders_[static_cast<std::size_t>(operation)];
  for (shard::UnitIndex passed : border.passes) carry_out(schedule_.backward_passed(passed));
  if (border.begins >= 0) carry_out(schedule_.backward_begins(border.begins));
}

void ShardWalk::gradient_arrived(network::TensorImpl& leaf) {
  const std::size_t i = index_.at(&leaf);
  if (arithmetic_.local_sums && leaf.grad) {
    if (!accumulators_[i]) {
      accumulators_[i] =
          a_.empty_strided(leaf.shape, leaf.strides, *job_.recipe().accumulator, Tag::kGradients);
    }
    leaf.grad.reset();
  }
  const std::size_t unit = units_.units.unit_of[i];
  if (--missing_[unit] > 0) return;
  carry_out(schedule_.gradients_complete(static_cast<shard::UnitIndex>(unit)));
}

void ShardWalk::finish_backward() {
  carry_out(schedule_.backward_ends());
  missing_ = trainable_;
}

void ShardWalk::reduce(std::size_t unit) {
  const shard::UnitLayout& layout = units_.layouts[unit];
  for (std::size_t g = 0; g < layout.groups().size(); ++g) {
    const shard::Group& group = layout.groups()[g];
    if (!group.trainable() || group.empty()) continue;
    Sums& sums = sums_[unit][g];
    sums.buffers = shard::reduce_buffers(group, job_.stage, arithmetic_, !sums.have);
    sums.input = block(sums.buffers.input, Tag::kReduce);
    for (std::size_t i : group.parameters()) {
      parameters_[i].impl()->grad.reset();
      accumulators_[i].reset();
    }
    if (sums.buffers.output == 0) continue;
    sums.output =
        block(sums.buffers.output, sums.buffers.output_stays ? Tag::kGradients : Tag::kReduce);
  }
  count(traffic_.reductions, shard::reduce_traffic(layout, job_.stage, arithmetic_));
}

// Of the unit whose turn it is.
void ShardWalk::count(CollectiveCount& kind, std::int64_t bytes) const {
  kind.units += a_.weight();
  kind.bytes = checked_add(kind.bytes, checked_mul(a_.weight(), bytes));
}

void ShardWalk::finish_reduction(std::size_t unit) {
  for (Sums& sums : sums_[unit]) {
    if (!sums.input) continue;
    if (sums.buffers.input_stays) {
      a_.retag(sums.input.storage(), Tag::kGradients);
      sums.kept[0] = sums.input;
    }
    if (sums.buffers.output_stays) sums.kept[1] = sums.output;
    sums.output.reset();
    sums.input.reset();
    sums.have = true;
  }
}

void ShardWalk::zero_grad() {
  for (std::vector<Sums>& unit : sums_) {
    for (Sums& sums : unit) sums = {};
  }
  for (const Tensor& p : parameters_) p.impl()->grad.reset();
  for (Tensor& accumulator : accumulators_) accumulator.reset();
}

void ShardWalk::optimizer_step() {
  for (std::size_t u = 0; u < units_.layouts.size(); ++u) {
    carry_out(schedule_.updated(static_cast<shard::UnitIndex>(u)));
  }
}

// --- what the schedule says ---------------------------------------------------------------------

void ShardWalk::carry_out(shard::Actions actions) {
  if (actions.empty()) return;
  const timeline::OperationId outer_operation = a_.operation;
  for (const Action& action : actions) carry_out(action);
  a_.operation = outer_operation;
}

void ShardWalk::carry_out(const Action& action) {
  const auto unit = static_cast<std::size_t>(action.unit);
  const shard::UnitLayout& layout = units_.layouts[unit];
  a_.operation = first_operation_ + static_cast<timeline::OperationId>(unit);
  switch (action.kind) {
    case ActionKind::kGather:
      a_.refill_storage(storages_[unit].storage(), Tag::kGathered);
      count(traffic_.gathers, shard::gather_traffic(layout));
      break;
    case ActionKind::kWait:
      break;
    case ActionKind::kRelease:
      a_.free_storage(storages_[unit].storage());
      break;
    case ActionKind::kReduce:
      reduce(unit);
      break;
    case ActionKind::kFinishReduce:
      finish_reduction(unit);
      break;
    case ActionKind::kUpdate:
      count(traffic_.updates, shard::update_traffic(layout));
      break;
  }
}

std::vector<std::string> unit_operation_names(const network::Network& network) {
  std::vector<std::string> names = unit_names(network);
  for (std::string& name : names) name = fmt::format("unit {}", name);
  return names;
}

}  // namespace plimsoll::plan
