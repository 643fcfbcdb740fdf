// What the optimizer sees of a unit.
#include "plimsoll/engine/zero/unit_shard.hpp"

namespace plimsoll::engine::zero {

using shard::Group;
using shard::Stage;

std::vector<OwnedPiece> UnitShard::owned(const std::vector<at::Tensor>& accumulators) const {
  std::vector<OwnedPiece> pieces;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = layout_.groups()[g];
    if (!group.trainable()) continue;
    if (!divided()) {
      for (std::size_t i = 0; i < group.parameters().size(); ++i) {
        pieces.push_back(whole(group, groups_[g], i, accumulators));
      }
      continue;
    }
    const shard::Range own = group.partition().range(world_.rank());
    for (const shard::FlatOrder::Piece& piece : group.flat().pieces(own)) {
      pieces.push_back(part(groups_[g], group, piece));
    }
  }
  return pieces;
}

OwnedPiece UnitShard::whole(const Group& group, const GroupShard& shard, std::size_t array,
                            const std::vector<at::Tensor>& accumulators) const {
  const std::size_t p = group.parameters()[array];
  const auto flat = [](const at::Tensor& t) {
    return t.defined() ? t.detach().view({-1}) : at::Tensor();
  };
  OwnedPiece piece;
  piece.parameter = p;
  piece.in_parameter = {0, parameters_[p].numel()};
  const bool has_master = stage0_masters_[p].defined();
  piece.weights = flat(has_master ? stage0_masters_[p] : parameters_[p]);
  if (has_master) piece.copy = flat(parameters_[p]);
  piece.first = flat(stage0_first_[p]);
  piece.second = flat(stage0_second_[p]);
  const shard::Range range = group.flat().range(array);
  if (shard.sums.defined()) {
    piece.gradient = shard.sums.narrow(0, range.begin, range.size());
  } else {
    piece.gradient = flat(accumulators[p].defined() ? accumulators[p] : parameters_[p].grad());
  }
  return piece;
}

OwnedPiece UnitShard::part(const GroupShard& shard, const Group& group,
                           const shard::FlatOrder::Piece& piece) const {
  const shard::Range own = group.partition().range(world_.rank());
  const std::int64_t begin = piece.in_flat.begin - own.begin;
  const std::int64_t size = piece.in_flat.size();
  const auto of_slot = [&](const at::Tensor& t) {
    return t.defined() ? t.narrow(0, begin, size) : at::Tensor();
  };
  OwnedPiece result;
  result.parameter = group.parameters()[piece.array];
  result.in_parameter = piece.in_array;
  result.gradient = of_slot(shard.sums);
  result.first = of_slot(shard.first);
  result.second = of_slot(shard.second);
  result.weights = of_slot(shard.master.defined() ? shard.master : shard.parameters);
  const bool full = settings_.stage != Stage::kParameters;
  if (!full) return result;
  const at::Tensor placed =
      parameters_[result.parameter].detach().view({-1}).narrow(0, piece.in_array.begin, size);
  if (shard.master.defined()) {
    result.copy = placed;
  } else {
    result.weights = placed;
  }
  return result;
}

}  // namespace plimsoll::engine::zero
