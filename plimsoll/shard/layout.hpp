// UnitLayout: where the parameters of one unit lie, in three orders at once, and how to get from one
// to the other without a second buffer.
//
// [Note: groups] Elements that travel in one collective must have one type and one fate. A unit is
// therefore cut into groups of equal (element type, trainable); nearly every unit has one. Padding is
// less than R elements per group. Frozen parameters get no gradient, no reduction, no moments.
//
// [Note: three orders] Within a group:
//   flat     the parameters end to end, row-major, no gaps. Ownership, gradients, masters, moments,
//            traffic and checkpoints count in it. Rank r owns partition.range(r).
//   packed   the flat order with its padding, R slots of `chunk` elements: what a collective sees.
//   placed   each parameter at a multiple of 64 bytes: what forward and backward read. (Products may
//            round differently by alignment; so every run has the same one.)
//
// [Note: gather in place] One storage per unit holds packed and placed order one after the other:
//   1. write the own shard into the own slot of the packed region [own_slot_offset, + chunk bytes);
//   2. all-gather in place over the packed region (each rank sends its slot, receives the others);
//   3. carry out spread() in order: moves parameters up to their places, last one first, so that none
//      overwrites one that has not moved yet. No moves when every size is a multiple of 64 bytes.
// So gathering allocates storage_bytes() and nothing else. Where full parameters live on (stages 1 and
// 2) the owner changes its pieces where they are placed; compact(rank) then moves these pieces down
// into the packed slot (over data that the gather brings again), and steps 2 and 3 follow.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/shard/partition.hpp"
#include "plimsoll/shard/units.hpp"

namespace plimsoll::shard {

inline constexpr std::int64_t kPlaceAlignment = 64;  // bytes

// memmove(base + to, base + from, bytes), base = the start of the group's region. Ranges may overlap.
struct Move {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t bytes = 0;
  bool operator==(const Move&) const = default;
};

class Group {
 public:
  Group(ElementType type, bool trainable, std::vector<std::size_t> parameters,
        const std::vector<std::int64_t>& elements, std::int32_t ranks, std::int64_t offset);

  ElementType type() const { return type_; }
  bool trainable() const { return trainable_; }
  // Positions in the list of parameters, ascending: array i of flat() is parameters()[i].
  const std::vector<std::size_t>& parameters() const { return parameters_; }
  const FlatOrder& flat() const { return flat_; }
  const Partition& partition() const { return partition_; }
  bool empty() const { return flat_.elements() == 0; }

  // Bytes, from the start of the unit's storage.
  std::int64_t offset() const { return offset_; }
  std::int64_t bytes() const { return bytes_; }  // of the region
  std::int64_t packed_bytes() const;             // offset() .. + packed_bytes()
  std::int64_t slot_bytes() const;               // chunk elements
  std::int64_t own_slot_offset(std::int32_t rank) const { return offset_ + rank * slot_bytes(); }
  std::int64_t place(std::size_t i) const { return offset_ + places_.at(i); }  // of array i

  std::vector<Move> spread() const;
  std::vector<Move> compact(std::int32_t rank) const;

 private:
  ElementType type_;
  bool trainable_;
  std::vector<std::size_t> parameters_;
  FlatOrder flat_;
  Partition partition_;
  std::int64_t offset_;
  std::int64_t bytes_ = 0;
  std::vector<std::int64_t> places_;  // by array, from offset_
};

class UnitLayout {
 public:
  // `parameters` is the list that the unit's positions count in. OverflowError beyond 64 bits.
  UnitLayout(const Unit& unit, const std::vector<Parameter>& parameters, std::int32_t ranks);

  const std::vector<Group>& groups() const { return groups_; }  // none empty of parameters
  // Bytes of the storage that a gathered unit has; 0 when the unit has no elements.
  std::int64_t storage_bytes() const { return storage_bytes_; }
  std::int64_t elements() const;            // without padding
  std::int64_t trainable_elements() const;  // without padding
  bool has_trainable() const { return trainable_elements() > 0; }
  bool has_frozen() const { return trainable_elements() < elements(); }

 private:
  std::vector<Group> groups_;
  std::int64_t storage_bytes_ = 0;
};

// All units of a model. Every rank builds the same.
std::vector<UnitLayout> lay_out(const Units& units, const std::vector<Parameter>& parameters,
                                std::int32_t ranks);

}  // namespace plimsoll::shard
