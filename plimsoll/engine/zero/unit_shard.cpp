#include "plimsoll/engine/zero/unit_shard.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/error.hpp"
#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/engine/library/parameter_storage.hpp"
#include "plimsoll/engine/optim/kernels.hpp"
#include "plimsoll/engine/zero/blocks.hpp"

namespace plimsoll::engine::zero {

using shard::Group;
using shard::Stage;
using timeline::Tag;

UnitShard::UnitShard(std::string name, const shard::UnitLayout& layout,
                     std::vector<at::Tensor> parameters, const Settings& settings,
                     comm::Communicator& world)
    : name_(std::move(name)),
      layout_(layout),
      parameters_(std::move(parameters)),
      settings_(settings),
      world_(world),
      groups_(layout.groups().size()),
      stage0_masters_(parameters_.size()),
      stage0_first_(parameters_.size()),
      stage0_second_(parameters_.size()) {}

at::ScalarType UnitShard::type_of(const Group& group) const {
  return static_cast<at::ScalarType>(group.type().code);
}

shard::Arithmetic UnitShard::bytes_of(const Group& group) const {
  return arithmetic(settings_, type_of(group), world_.size());
}

bool UnitShard::mastered(const Group& group) const {
  return group.trainable() && settings_.master.has_value();
}

std::byte* UnitShard::base(const Group& group) const {
  void* data = storage_.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
  return static_cast<std::byte*>(data) + group.offset();
}

void UnitShard::move(const Group& group, const std::vector<shard::Move>& moves) const {
  if (settings_.device.is_meta()) return;
  for (const shard::Move& m : moves) {
    std::memmove(base(group) + m.to, base(group) + m.from, static_cast<std::size_t>(m.bytes));
  }
}

at::Tensor UnitShard::packed(const Group& group) const {
  return tensor_in(storage_, group.offset(), {group.partition().padded()}, type_of(group));
}

at::Tensor UnitShard::slot(const Group& group, std::int32_t rank) const {
  return tensor_in(storage_, group.own_slot_offset(rank), {group.partition().chunk()},
                   type_of(group));
}

std::string UnitShard::freed_message() const {
  return fmt::format(
      "[zero] a parameter of unit '{}' is sharded: its values are on {} ranks, expected to be read "
      "only while the unit is gathered. Hint: call the wrapped module's forward, not a part of it, "
      "and let modules that read each other's parameters be one unit",
      name_, world_.size());
}

// --- the model ----------------------------------------------------------------------------------

void UnitShard::take_over(const Fill& fill) {
  const std::int64_t bytes = layout_.storage_bytes();
  if (bytes > 0) {
    storage_ = make_storage(shared_block(world_, settings_.device, bytes, Tag::kParameters), bytes);
  }
  make_shards();
  if (bytes == 0) return;
  for (std::size_t g = 0; g < groups_.size(); ++g) place(g, fill);
  if (settings_.stage == Stage::kParameters) free_storage(storage_, freed_message());
}

// One parameter after the other: beside shards and the unit at most one parameter is alive.
void UnitShard::place(std::size_t g, const Fill& fill) {
  const Group& group = layout_.groups()[g];
  for (std::size_t i = 0; i < group.parameters().size(); ++i) {
    const std::size_t p = group.parameters()[i];
    const at::Tensor placed =
        tensor_in(storage_, group.place(i), parameters_[p].sizes(), type_of(group));
    at::Tensor values = fill(p, placed);
    if (values.defined()) {
      copy_elements(placed, values);
    } else {
      values = placed;
    }
    place_parameter(parameters_[p], storage_, group.place(i), type_of(group));
    fill_shard(g, i, values);
  }
}

void UnitShard::make_shards() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = layout_.groups()[g];
    GroupShard& shard = groups_[g];
    const std::int64_t chunk = group.partition().chunk();
    if (mastered(group)) {
      shard.master = own_zeros(settings_.device, chunk, *settings_.master, Tag::kMasterCopy);
    }
    if (settings_.stage == Stage::kParameters && !mastered(group)) {
      shard.parameters = own_zeros(settings_.device, chunk, type_of(group), Tag::kParameters);
    }
    if (!group.trainable()) continue;
    if (settings_.moments > 0) {
      shard.first = own_zeros(settings_.device, chunk, settings_.moment, Tag::kOptimizer);
    }
    if (settings_.moments > 1) {
      shard.second = own_zeros(settings_.device, chunk, settings_.moment, Tag::kOptimizer);
    }
  }
}

// What this rank owns of array i of group g.
void UnitShard::fill_shard(std::size_t g, std::size_t i, const at::Tensor& values) {
  const Group& group = layout_.groups()[g];
  const at::Tensor& target =
      groups_[g].master.defined() ? groups_[g].master : groups_[g].parameters;
  if (!target.defined()) return;
  const shard::Range own = group.partition().range(world_.rank());
  for (const shard::FlatOrder::Piece& piece : group.flat().pieces(own)) {
    if (piece.array != i) continue;
    const std::int64_t size = piece.in_flat.size();
    copy_elements(target.narrow(0, piece.in_flat.begin - own.begin, size),
                  values.detach().view({-1}).narrow(0, piece.in_array.begin, size));
  }
}

// Returns the values.
at::Tensor UnitShard::give_memory(std::size_t p, at::ScalarType type, const Fill& fill) const {
  const at::Tensor& parameter = parameters_[p];
  const TagScope tag(Tag::kParameters);
  const at::Tensor placed =
      at::empty(parameter.sizes(), at::TensorOptions().dtype(type).device(settings_.device));
  at::Tensor values = fill(p, placed);
  if (values.defined()) {
    copy_elements(placed, values);
  } else {
    values = placed;
  }
  place_parameter(parameter, placed.storage(), 0, type);
  return values;
}

void UnitShard::adopt(const Fill& fill) {
  for (const Group& group : layout_.groups()) {
    for (std::size_t p : group.parameters()) {
      at::Tensor values = parameters_[p].detach();
      const bool fits = values.scalar_type() == type_of(group);
      if (!fits || values.device() != settings_.device)
        values = give_memory(p, type_of(group), fill);
      if (!mastered(group)) continue;
      const TagScope tag(Tag::kMasterCopy);
      stage0_masters_[p] = values.to(*settings_.master, /*non_blocking=*/false, /*copy=*/true);
    }
  }
  const TagScope tag(Tag::kOptimizer);
  for (const Group& group : layout_.groups()) {
    if (!group.trainable()) continue;
    for (std::size_t p : group.parameters()) {
      const at::TensorOptions options = parameters_[p].options().dtype(settings_.moment);
      const at::TensorOptions plain = options.requires_grad(false);
      if (settings_.moments > 0) stage0_first_[p] = at::zeros(parameters_[p].sizes(), plain);
      if (settings_.moments > 1) stage0_second_[p] = at::zeros(parameters_[p].sizes(), plain);
    }
  }
}

// --- gathering ----------------------------------------------------------------------------------

void UnitShard::begin_gather(const comm::Label& label) {
  fill_storage(storage_,
               shared_block(world_, settings_.device, layout_.storage_bytes(), Tag::kGathered));
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = layout_.groups()[g];
    if (group.empty()) continue;
    const GroupShard& shard = groups_[g];
    const at::Tensor own = slot(group, world_.rank());
    copy_elements(own, shard.master.defined() ? shard.master : shard.parameters);
    groups_[g].work = world_.all_gather(view_of(own), view_of(packed(group)), label);
  }
}

void UnitShard::finish_gather() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    groups_[g].work.wait();
    if (!layout_.groups()[g].empty()) move(layout_.groups()[g], layout_.groups()[g].spread());
  }
}

void UnitShard::release() { free_storage(storage_, freed_message()); }

void UnitShard::update(const comm::Label& label) {
  const auto each_trainable = [&](const auto& work) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = layout_.groups()[g];
      if (group.trainable() && !group.empty()) work(group, groups_[g]);
    }
  };
  each_trainable([&](const Group& group, GroupShard& shard) {
    move(group, group.compact(world_.rank()));
    shard.work =
        world_.all_gather(view_of(slot(group, world_.rank())), view_of(packed(group)), label);
  });
  each_trainable([&](const Group& group, GroupShard& shard) {
    shard.work.wait();
    move(group, group.spread());
  });
}

// --- reducing -----------------------------------------------------------------------------------

void UnitShard::begin_reduction(std::vector<at::Tensor>& accumulators, const comm::Label& label) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = layout_.groups()[g];
    if (!group.trainable() || group.empty()) continue;
    GroupShard& shard = groups_[g];
    const shard::Arithmetic bytes = bytes_of(group);
    shard.buffers = reduce_buffers(group, settings_.stage, bytes, !shard.sums.defined());
    const at::ScalarType sum = sum_type(type_of(group));
    const at::ScalarType travel = bytes.local_sums ? sum : type_of(group);
    const std::int64_t padded = group.partition().padded();
    const std::int64_t chunk = group.partition().chunk();
    shard.input = shared_elements(world_, settings_.device, padded, travel, Tag::kReduce);
    collect_gradients(group, shard.input, accumulators);
    if (shard.buffers.output > 0) {
      const Tag tag = shard.buffers.output_stays ? Tag::kGradients : Tag::kReduce;
      shard.output = own_elements(settings_.device, divided() ? chunk : padded, sum, tag);
    }
    if (!divided()) {
      const at::Tensor& to = shard.output.defined() ? shard.output : shard.input;
      shard.work = world_.all_reduce(view_of(shard.input), view_of(to), label);
      continue;
    }
    const at::Tensor to =
        shard.output.defined() ? shard.output : shard.input.narrow(0, world_.rank() * chunk, chunk);
    shard.work = world_.reduce_scatter(view_of(shard.input), view_of(to), label);
  }
}

// Drops each gradient as soon as it is copied.
void UnitShard::collect_gradients(const Group& group, const at::Tensor& input,
                                  std::vector<at::Tensor>& accumulators) const {
  const at::NoGradGuard no_grad;
  const bool meta = input.is_meta();
  for (std::size_t i = 0; i < group.parameters().size(); ++i) {
    const std::size_t p = group.parameters()[i];
    at::Tensor& gradient =
        accumulators[p].defined() ? accumulators[p] : parameters_[p].mutable_grad();
    const shard::Range flat = group.flat().range(i);
    if (!meta && !flat.empty()) {
      const at::Tensor place = input.narrow(0, flat.begin, flat.size());
      if (gradient.defined()) {
        place.view(parameters_[p].sizes()).copy_(gradient);
      } else {
        place.zero_();
      }
    }
    gradient.reset();
  }
  const std::int64_t padding = group.partition().padding();
  if (!meta && padding > 0) input.narrow(0, group.flat().elements(), padding).zero_();
}

void UnitShard::finish_reduction() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].input.defined()) continue;
    groups_[g].work.wait();
    keep_sums(layout_.groups()[g], groups_[g]);
  }
}

void UnitShard::keep_sums(const Group& group, GroupShard& shard) {
  const std::int64_t chunk = group.partition().chunk();
  at::Tensor result = shard.output;
  if (!result.defined()) {
    result = divided() ? shard.input.narrow(0, world_.rank() * chunk, chunk) : shard.input;
  }
  if (shard.buffers.input_stays) {
    retag(shard.input, Tag::kGradients);
    shard.kept = shard.input;
  }
  if (shard.sums.defined()) {
    add_gradient(shard.sums, result);
  } else {
    shard.sums = result;
  }
  result.reset();
  shard.output.reset();
  shard.input.reset();
}

void UnitShard::drop_sums() {
  for (GroupShard& shard : groups_) {
    shard.sums.reset();
    shard.kept.reset();
  }
}

bool UnitShard::has_sums() const {
  for (const GroupShard& shard : groups_) {
    if (shard.sums.defined()) return true;
  }
  return false;
}

std::vector<at::Tensor> UnitShard::sums_of(std::int32_t rank) const {
  std::vector<at::Tensor> result;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const shard::Range range = layout_.groups()[g].partition().range(rank);
    if (!groups_[g].sums.defined() || range.empty()) continue;
    check(!divided() || rank == world_.rank(), "the sums of another rank lie there");
    result.push_back(groups_[g].sums.narrow(0, divided() ? 0 : range.begin, range.size()));
  }
  return result;
}

}  // namespace plimsoll::engine::zero
