// What the optimizer and checkpoints see of a unit.
#include <utility>

#include "plimsoll/engine/zero/blocks.hpp"
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
        OwnedPiece piece = whole(group, groups_[g], i, accumulators);
        // Parameters without elements are never reduced: what stands for their gradient is no sum.
        if (!piece.in_parameter.empty()) pieces.push_back(std::move(piece));
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

std::vector<OwnedPiece> UnitShard::held() const {
  const std::vector<at::Tensor> no_accumulators(parameters_.size());
  std::vector<OwnedPiece> pieces;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = layout_.groups()[g];
    const bool is_divided =
        divided() && (group.trainable() || settings_.stage == Stage::kParameters);
    if (!is_divided) {
      for (std::size_t i = 0; i < group.parameters().size(); ++i) {
        pieces.push_back(whole(group, groups_[g], i, no_accumulators));
      }
      continue;
    }
    for (const shard::FlatOrder::Piece& piece :
         group.flat().pieces(group.partition().range(world_.rank()))) {
      pieces.push_back(part(groups_[g], group, piece));
    }
  }
  for (OwnedPiece& piece : pieces) piece.gradient.reset();
  return pieces;
}

namespace {

// The stretch `range` of its parameter, which `piece` covers.
OwnedPiece cut(const OwnedPiece& piece, const shard::Range& range) {
  const auto of = [&](const at::Tensor& t) {
    if (!t.defined()) return t;
    return t.narrow(0, range.begin - piece.in_parameter.begin, range.size());
  };
  OwnedPiece result;
  result.parameter = piece.parameter;
  result.in_parameter = range;
  result.weights = of(piece.weights);
  result.first = of(piece.first);
  result.second = of(piece.second);
  result.copy = of(piece.copy);
  return result;
}

}  // namespace

std::vector<OwnedPiece> UnitShard::share() const {
  std::vector<shard::Range> own(parameters_.size());
  for (const Group& group : layout_.groups()) {
    for (const shard::FlatOrder::Piece& piece :
         group.flat().pieces(group.partition().range(world_.rank()))) {
      own[group.parameters()[piece.array]] = piece.in_array;
    }
  }
  std::vector<OwnedPiece> pieces;
  for (const OwnedPiece& piece : held()) {
    const shard::Range range = intersection(piece.in_parameter, own[piece.parameter]);
    if (!range.empty()) pieces.push_back(cut(piece, range));
  }
  return pieces;
}

void UnitShard::adopt_held() {
  for (const OwnedPiece& piece : held()) {
    if (piece.copy.defined()) copy_elements(piece.copy, piece.weights);
  }
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
