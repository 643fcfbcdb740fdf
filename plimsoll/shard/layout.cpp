#include "plimsoll/shard/layout.hpp"

#include <algorithm>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::shard {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return checked_add(bytes, kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
}

}  // namespace

Group::Group(ElementType type, bool trainable, std::vector<std::size_t> parameters,
             const std::vector<std::int64_t>& elements, std::int32_t ranks, std::int64_t offset)
    : type_(type),
      trainable_(trainable),
      parameters_(std::move(parameters)),
      flat_(elements),
      partition_(flat_.elements(), ranks),
      offset_(offset) {
  std::int64_t end = 0;
  for (std::int64_t n : elements) {
    places_.push_back(aligned(end));
    end = checked_add(places_.back(), checked_mul(n, type_.bytes));
  }
  if (!empty()) bytes_ = std::max(end, packed_bytes());
}

std::int64_t Group::packed_bytes() const { return checked_mul(partition_.padded(), type_.bytes); }
std::int64_t Group::slot_bytes() const { return checked_mul(partition_.chunk(), type_.bytes); }

std::vector<Move> Group::spread() const {
  std::vector<Move> moves;
  for (std::size_t i = places_.size(); i-- > 0;) {
    const Range range = flat_.range(i);
    const std::int64_t from = range.begin * type_.bytes;
    if (range.empty() || from == places_[i]) continue;
    moves.push_back({from, places_[i], range.size() * type_.bytes});
  }
  return moves;
}

std::vector<Move> Group::compact(std::int32_t rank) const {
  std::vector<Move> moves;
  for (const FlatOrder::Piece& piece : flat_.pieces(partition_.range(rank))) {
    const std::int64_t from = places_[piece.array] + piece.in_array.begin * type_.bytes;
    const std::int64_t to = piece.in_flat.begin * type_.bytes;
    if (from != to) moves.push_back({from, to, piece.in_flat.size() * type_.bytes});
  }
  return moves;
}

UnitLayout::UnitLayout(const Unit& unit, const std::vector<Parameter>& parameters,
                       std::int32_t ranks) {
  struct Members {
    ElementType type;
    bool trainable;
    std::vector<std::size_t> positions;
    std::vector<std::int64_t> elements;
  };
  std::vector<Members> members;
  for (std::size_t i : unit.parameters) {
    const Parameter& p = parameters.at(i);
    auto group = std::find_if(members.begin(), members.end(), [&](const Members& m) {
      return m.type == p.type && m.trainable == p.trainable;
    });
    if (group == members.end()) {
      group = members.insert(members.end(), {p.type, p.trainable, {}, {}});
    }
    group->positions.push_back(i);
    group->elements.push_back(element_count(p));
  }
  for (Members& m : members) {
    const std::int64_t offset = aligned(storage_bytes_);
    groups_.emplace_back(m.type, m.trainable, std::move(m.positions), m.elements, ranks, offset);
    if (!groups_.back().empty()) storage_bytes_ = checked_add(offset, groups_.back().bytes());
  }
}

std::int64_t UnitLayout::elements() const {
  std::int64_t sum = 0;
  for (const Group& group : groups_) sum = checked_add(sum, group.flat().elements());
  return sum;
}

std::int64_t UnitLayout::trainable_elements() const {
  std::int64_t sum = 0;
  for (const Group& group : groups_) {
    if (group.trainable()) sum = checked_add(sum, group.flat().elements());
  }
  return sum;
}

std::vector<UnitLayout> lay_out(const Units& units, const std::vector<Parameter>& parameters,
                                std::int32_t ranks) {
  std::vector<UnitLayout> layouts;
  layouts.reserve(units.units.size());
  for (const Unit& unit : units.units) layouts.emplace_back(unit, parameters, ranks);
  return layouts;
}

}  // namespace plimsoll::shard
