#include "plimsoll/shard/memory.hpp"

#include "plimsoll/base/checked.hpp"

namespace plimsoll::shard {
namespace {

std::int64_t padded_bytes(const Group& group, std::int64_t each) {
  return checked_mul(group.partition().padded(), each);
}
std::int64_t slot_bytes(const Group& group, std::int64_t each) {
  return checked_mul(group.partition().chunk(), each);
}
std::int64_t exact_bytes(const Group& group, std::int64_t each) {
  return checked_mul(group.flat().elements(), each);
}

void add(std::int64_t& sum, std::int64_t bytes) { sum = checked_add(sum, bytes); }

bool full_parameters(Stage stage) {
  return stage == Stage::kOptimizer || stage == Stage::kGradients;
}

std::int64_t resident_gradients(const Group& group, Stage stage, const Arithmetic& arithmetic) {
  if (stage == Stage::kNothing && group.partition().ranks() == 1) {
    return exact_bytes(group, travel_bytes(group, arithmetic));
  }
  const ReduceBuffers buffers = reduce_buffers(group, stage, arithmetic, true);
  return checked_add(buffers.input_stays ? buffers.input : 0,
                     buffers.output_stays ? buffers.output : 0);
}

void add_resident(Resident& r, const Group& group, Stage stage, const Arithmetic& arithmetic) {
  const bool divided = stage != Stage::kNothing;
  const auto owned = [&](std::int64_t each) {
    return divided ? slot_bytes(group, each) : exact_bytes(group, each);
  };
  const bool mastered = group.trainable() && arithmetic.master > 0;
  // Full parameters are counted by unit; at stage 3 a master shard is all there is.
  if (!full_parameters(stage) && !(stage == Stage::kParameters && mastered)) {
    add(r.parameters, owned(group.type().bytes));
  }
  if (!group.trainable()) return;
  add(r.masters, owned(arithmetic.master));
  add(r.moments, checked_mul(arithmetic.moments, owned(arithmetic.moment)));
  add(r.gradients, resident_gradients(group, stage, arithmetic));
}

std::int64_t others_slots(const Group& group, std::int64_t each) {
  return checked_mul(group.partition().ranks() - 1, slot_bytes(group, each));
}

}  // namespace

std::int64_t travel_bytes(const Group& group, const Arithmetic& arithmetic) {
  return arithmetic.local_sums ? arithmetic.sum : group.type().bytes;
}

std::int64_t Resident::total() const {
  return checked_add(checked_add(parameters, masters), checked_add(gradients, moments));
}

Resident resident(const std::vector<UnitLayout>& units, Stage stage, const Arithmetic& arithmetic) {
  Resident result;
  for (const UnitLayout& unit : units) {
    if (full_parameters(stage)) add(result.parameters, unit.storage_bytes());
    for (const Group& group : unit.groups()) add_resident(result, group, stage, arithmetic);
  }
  return result;
}

ReduceBuffers reduce_buffers(const Group& group, Stage stage, const Arithmetic& arithmetic,
                             bool first) {
  const bool shards_gradients = stage == Stage::kGradients || stage == Stage::kParameters;
  const std::int64_t travel = travel_bytes(group, arithmetic);
  ReduceBuffers buffers;
  buffers.input = padded_bytes(group, travel);
  const bool in_place = travel == arithmetic.sum && !(shards_gradients && first);
  if (!in_place) {
    buffers.output = stage == Stage::kNothing ? padded_bytes(group, arithmetic.sum)
                                              : slot_bytes(group, arithmetic.sum);
  }
  buffers.output_stays = first && !in_place;
  buffers.input_stays = first && (stage == Stage::kOptimizer || (in_place && !shards_gradients));
  return buffers;
}

std::int64_t snapshot_bytes(const std::vector<UnitLayout>& units, const Arithmetic& arithmetic) {
  std::int64_t total = 0;
  for (const UnitLayout& unit : units) {
    for (const Group& group : unit.groups()) {
      const bool mastered = group.trainable() && arithmetic.master > 0;
      add(total, slot_bytes(group, mastered ? arithmetic.master : group.type().bytes));
      if (!group.trainable()) continue;
      add(total, checked_mul(arithmetic.moments, slot_bytes(group, arithmetic.moment)));
    }
  }
  return total;
}

std::int64_t gather_traffic(const UnitLayout& unit) {
  std::int64_t total = 0;
  for (const Group& group : unit.groups()) add(total, others_slots(group, group.type().bytes));
  return total;
}

std::int64_t update_traffic(const UnitLayout& unit) {
  std::int64_t total = 0;
  for (const Group& group : unit.groups()) {
    if (group.trainable()) add(total, others_slots(group, group.type().bytes));
  }
  return total;
}

std::int64_t reduce_traffic(const UnitLayout& unit, Stage stage, const Arithmetic& arithmetic) {
  std::int64_t total = 0;
  for (const Group& group : unit.groups()) {
    if (!group.trainable()) continue;
    add(total, others_slots(group, travel_bytes(group, arithmetic)));
    if (stage == Stage::kNothing) add(total, others_slots(group, arithmetic.sum));
  }
  return total;
}

}  // namespace plimsoll::shard
