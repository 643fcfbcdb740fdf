// Partition arithmetic: which rank owns which elements of a flat array, and how ownership at R ranks
// maps to ownership at another number of ranks. Pure integers, no tensors, no bytes.
//
// A flat array of N elements is cut into R slots of chunk = ceil(N / R) elements each; rank r has
// slot r. All slots are equal, so that collectives need one count; what sticks out behind element N
// is padding: less than R elements in all. A rank may own nothing (N = 3, R = 4: rank 3) and then has
// a slot of padding alone. Padding is zero in every buffer, always: it changes no sum and no norm.
//
//   N = 10, R = 4, chunk = 3      0 1 2 | 3 4 5 | 6 7 8 | 9 . .
//                                 rank 0  rank 1  rank 2  rank 3
//
// Everything here speaks of all ranks and is the same on each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll::shard {

// Elements [begin, end) of a flat array.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool operator==(const Range&) const = default;
};

// The common elements; empty when there are none.
Range intersection(const Range& a, const Range& b);

class Partition {
 public:
  // `elements` >= 0 and `ranks` >= 1, else InternalError; OverflowError when the padded count leaves
  // 64 bits.
  Partition(std::int64_t elements, std::int32_t ranks);

  std::int64_t elements() const { return elements_; }
  std::int32_t ranks() const { return ranks_; }
  std::int64_t chunk() const { return chunk_; }                  // elements of one slot
  std::int64_t padded() const { return chunk_ * ranks_; }        // elements of all slots
  std::int64_t padding() const { return padded() - elements_; }  // 0 .. ranks - 1

  // Slot r with its padding: what travels. range(r) is its first range(r).size() elements.
  Range slot(std::int32_t rank) const;
  // What rank r owns: the slot without padding. Disjoint over the ranks, together all elements.
  Range range(std::int32_t rank) const;
  // Who owns an element in [0, elements).
  std::int32_t owner(std::int64_t element) const;

  bool operator==(const Partition&) const = default;

 private:
  std::int64_t elements_;
  std::int32_t ranks_;
  std::int64_t chunk_;
};

// One stretch of elements that a rank of the old world hands to a rank of the new one.
struct Transfer {
  std::int32_t from = 0;
  std::int32_t to = 0;
  Range range;  // of the flat array; inside from's range of the old and to's range of the new
  bool operator==(const Transfer&) const = default;
};

// The same array at another number of ranks: every element in exactly one transfer, ascending, no
// empty ones. A rank that stays where it is appears as a transfer to itself. Both must have the same
// number of elements.
std::vector<Transfer> remap(const Partition& old_world, const Partition& new_world);

// Several arrays (the parameters of a unit, each in row-major order) laid end to end in the order
// given, without gaps.
class FlatOrder {
 public:
  // Elements of each array, >= 0. OverflowError when their sum leaves 64 bits.
  explicit FlatOrder(const std::vector<std::int64_t>& elements);

  std::size_t arrays() const { return begin_.size() - 1; }
  std::int64_t elements() const { return begin_.back(); }
  // Where array i lies in the flat order.
  Range range(std::size_t i) const { return {begin_.at(i), begin_.at(i + 1)}; }

  // A stretch of one array, by its own and by flat elements.
  struct Piece {
    std::size_t array = 0;
    Range in_array;
    Range in_flat;
    bool operator==(const Piece&) const = default;
  };
  // The pieces of a flat range, ascending, none empty. Their sizes sum to the range's; what lies
  // behind the last element (padding) belongs to no piece.
  std::vector<Piece> pieces(const Range& flat) const;

 private:
  std::vector<std::int64_t> begin_;  // by array, and the end
};

}  // namespace plimsoll::shard
