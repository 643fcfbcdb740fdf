// What a sharded run holds and moves, in bytes per rank. All ranks hold the same: shards are slots with
// their padding. Pure functions of layouts; the calculated run, the engine and the documents agree
// with them (tests).
//
// [Note: resident state] per trainable group with P padded and c = P / R elements, e bytes of the
// type that forward reads, s bytes of a sum of gradients (4; 8 for fp64), master and moment bytes as
// below. N is P without padding:
//
//            parameters        master   gradients                        moments, each
//   stage 0  N e, one by one   N        R = 1: N e; else P s             N, one by one
//   stage 1  unit storage      c        P t, and c s beside it if t < s  c
//   stage 2  unit storage      c        c s                              c
//   stage 3  c e, or the       c        c s                              c
//            master shard alone
//
// A frozen group has parameters alone: c e at stage 3. Parameters of stages 1 and 2 are the unit's
// storage (UnitLayout::storage_bytes), of which each rank's optimizer changes its own pieces.
//
// [Note: reduce buffers] of one reduction, per trainable group; t = bytes in which gradients travel:
// e, or s when micro-batches add up locally (unsynchronised accumulation). In the order of events:
//   kReduce        1. `input`: P t, all parameters in packed order, padding and missing gradients
//                     zero. Each full gradient is dropped as soon as it is copied.
//                  2. `output`, where sums do not fit into the input: s per element, P elements at
//                     stage 0, c at stages 1 to 3.
//   kFinishReduce  3. every sum is divided once by R (by R k at the end of k micro-batches).
//                  4. First micro-batch: the sums stay as gradients. They are the output; or, without
//                     one (t = s at stages 0 and 1), the input, which then becomes gradients whole.
//                     Stage 1 keeps its input in any case: that is what stage 1 is.
//                     Later micro-batches: the sums are added to what stayed.
//                  5. What did not stay is freed.
// Where t = s, sums are made in place: everywhere in the input at stage 0 (all-reduce), in the own slot
// at stages 1 to 3; only stages 2 and 3 need an output then, in the first micro-batch, to stay.
//
// At stage 3 a gathered unit adds UnitLayout::storage_bytes().
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/shard/layout.hpp"
#include "plimsoll/shard/stage.hpp"

namespace plimsoll::shard {

// Bytes of one element, besides what Group::type says.
struct Arithmetic {
  std::int64_t master = 0;  // 0: what forward reads is its own master
  std::int64_t sum = 4;     // of reduced gradients; at least the group's type
  std::int64_t moment = 4;
  int moments = 2;
  bool local_sums = false;  // micro-batches add up in `sum` before they are reduced
};

// Bytes in which a gradient of this group travels: t above.
std::int64_t travel_bytes(const Group& group, const Arithmetic& arithmetic);

// Resident state between the last reduction of a step and its optimizer step.
struct Resident {
  std::int64_t parameters = 0;
  std::int64_t masters = 0;
  std::int64_t gradients = 0;
  std::int64_t moments = 0;
  std::int64_t total() const;
};
Resident resident(const std::vector<UnitLayout>& units, Stage stage, const Arithmetic& arithmetic);

struct ReduceBuffers {
  std::int64_t input = 0;
  std::int64_t output = 0;    // 0: sums are made in the input
  bool input_stays = false;   // becomes gradients at kFinishReduce
  bool output_stays = false;  // is gradients from its allocation on
};
// `first`: no earlier micro-batch of this step has left sums of this group. Not for stage 0 at R = 1,
// which reduces nothing.
ReduceBuffers reduce_buffers(const Group& group, Stage stage, const Arithmetic& arithmetic,
                             bool first);

// A snapshot for a checkpoint: the slots of what this rank owns (master or parameter, moments), at
// every stage; frozen parameters count once, in slots, too.
std::int64_t snapshot_bytes(const std::vector<UnitLayout>& units, const Arithmetic& arithmetic);

// [Note: traffic] is counted as bytes that a rank takes from other ranks. Scalars (norms, losses, order
// hashes) are not in it.
//   gather of a group          (R - 1) c e      all groups at stage 3, trainable ones at stages 1, 2
//   reduce-scatter of a group  (R - 1) c t
//   all-reduce of a group      (R - 1) c t + (R - 1) c s      stage 0: sums come back unrounded
std::int64_t gather_traffic(const UnitLayout& unit);
std::int64_t update_traffic(const UnitLayout& unit);
std::int64_t reduce_traffic(const UnitLayout& unit, Stage stage, const Arithmetic& arithmetic);

}  // namespace plimsoll::shard
