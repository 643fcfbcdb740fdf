// UnitShard: what one rank holds of one unit, and the transfers that bring the rest.
//
// Executes the actions of shard::Schedule for its unit; when each may happen is the schedule's
// business. Buffers come and go at the instants that shard/memory.hpp lists. Per rank; the collective
// calls (gather, reduce, update) have to happen on all ranks in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/engine/torch.hpp"
#include "plimsoll/engine/zero/settings.hpp"
#include "plimsoll/shard/layout.hpp"

namespace plimsoll::engine::zero {

// A stretch of the elements that this rank's optimizer updates: of one parameter, contiguous.
struct OwnedPiece {
  std::size_t parameter = 0;  // position in the model's list
  shard::Range in_parameter;
  at::Tensor weights;   // masters, or the parameters themselves
  at::Tensor gradient;  // sum over ranks and micro-batches, not divided
  at::Tensor first;     // moments; undefined where the optimizer has none
  at::Tensor second;
  at::Tensor copy;  // 16-bit parameters beside masters, where full ones are kept
};

class UnitShard {
 public:
  // `parameters`: the model's list, with what the unit's positions refer to. Neither allocates nor
  // touches them.
  UnitShard(std::string name, const shard::UnitLayout& layout, std::vector<at::Tensor> parameters,
            const Settings& settings, comm::Communicator& world);

  const std::string& name() const { return name_; }
  const shard::UnitLayout& layout() const { return layout_; }

  // Once, at stages 1 to 3: moves the parameters into the unit's storage, fills them, makes shards,
  // masters and moments, and at stage 3 frees the storage. `fill(i, placed)` gives the values of
  // parameter i: it returns them, of any floating type, or writes them to `placed`, which has the
  // parameter's shape and the type that forward reads, and returns an undefined tensor. Masters keep
  // what a wider type holds. A returned tensor is dropped before the next parameter.
  using Fill = std::function<at::Tensor(std::size_t parameter, const at::Tensor& placed)>;
  void take_over(const Fill& fill);
  // Once, at stage 0: masters and moments per parameter. Parameters that are where they run and have their
  // type keep their memory and values; others get both, as above.
  void adopt(const Fill& fill);

  // --- actions
  void begin_gather(const comm::Label& label);
  void finish_gather();
  void release();
  // Gradients of the parameters, whose list is `accumulators` where those are defined, else .grad;
  // drops them. Missing ones count as zeros.
  void begin_reduction(std::vector<at::Tensor>& accumulators, const comm::Label& label);
  void finish_reduction();
  void update(const comm::Label& label);

  // Forgets the gradients of the step.
  void drop_sums();
  bool has_sums() const;
  // What the optimizer updates, in ascending order; gradients are undefined while there are none. Where
  // nothing is reduced (stage 0 at R = 1) they are `accumulators`, or .grad where those are undefined.
  std::vector<OwnedPiece> owned(const std::vector<at::Tensor>& accumulators) const;
  // What this rank holds of every parameter, frozen ones included, without gradients: all of it, or its
  // own stretch. Frozen parameters are whole where they are not divided.
  std::vector<OwnedPiece> held() const;
  // The part of held() that is this rank's to save: disjoint over the ranks, together everything.
  std::vector<OwnedPiece> share() const;
  // After values were written into held(): masters go into what forward reads. What other ranks own
  // follows with update().
  void adopt_held();
  // Bytes of the sums that lie here and belong to `rank`, in ascending order. At stage 0 every rank
  // has everybody's.
  std::vector<at::Tensor> sums_of(std::int32_t rank) const;

 private:
  struct GroupShard {
    at::Tensor parameters;  // stage 3 without masters
    at::Tensor master;
    at::Tensor first;
    at::Tensor second;
    at::Tensor input;  // of the reduction in flight
    at::Tensor output;
    shard::ReduceBuffers buffers;
    at::Tensor sums;  // of this step: own slot at stages 1 to 3, all in packed order at stage 0
    at::Tensor kept;  // what `sums` is a part of
    comm::Work work;
  };

  at::ScalarType type_of(const shard::Group& group) const;
  shard::Arithmetic bytes_of(const shard::Group& group) const;
  bool mastered(const shard::Group& group) const;
  bool divided() const { return settings_.stage != shard::Stage::kNothing; }

  void place(std::size_t group, const Fill& fill);
  at::Tensor give_memory(std::size_t parameter, at::ScalarType type, const Fill& fill) const;
  void make_shards();
  void fill_shard(std::size_t group, std::size_t array, const at::Tensor& values);
  std::byte* base(const shard::Group& group) const;
  void move(const shard::Group& group, const std::vector<shard::Move>& moves) const;
  at::Tensor packed(const shard::Group& group) const;
  at::Tensor slot(const shard::Group& group, std::int32_t rank) const;
  void collect_gradients(const shard::Group& group, const at::Tensor& input,
                         std::vector<at::Tensor>& accumulators) const;
  void keep_sums(const shard::Group& group, GroupShard& shard);
  OwnedPiece whole(const shard::Group& group, const GroupShard& shard, std::size_t array,
                   const std::vector<at::Tensor>& accumulators) const;
  OwnedPiece part(const GroupShard& shard, const shard::Group& group,
                  const shard::FlatOrder::Piece& piece) const;
  std::string freed_message() const;

  const std::string name_;
  const shard::UnitLayout layout_;
  const std::vector<at::Tensor> parameters_;
  const Settings settings_;
  comm::Communicator& world_;
  at::Storage storage_;
  std::vector<GroupShard> groups_;
  std::vector<at::Tensor> stage0_masters_;  // by parameter of the model; stage 0 alone
  std::vector<at::Tensor> stage0_first_;
  std::vector<at::Tensor> stage0_second_;
};

}  // namespace plimsoll::engine::zero
