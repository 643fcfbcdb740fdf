// Writes a sharded checkpoint. What stands in its folder: manifest.hpp.
//
// [Note: saving] Each rank writes one file; rank 0 makes it a checkpoint. The barriers between are the
// caller's, and so is telling the others that a call failed: after an Error on any rank, rank 0 calls
// abandon() in place of commit() and the run may go on. Until commit() has returned the previous
// checkpoints are as they were; a process that dies at any instant leaves at most a folder that
// newest_valid() skips.
//
//   SavePlan plan{folder, step, world.size(), stage, tensors};       // equal on all ranks
//   Result<void> ok;
//   if (rank == 0) ok = checkpoint::prepare(plan);
//   // all ranks learn whether ok                                    // barrier 1
//   auto writer = checkpoint::Writer::open(plan, rank);
//   for (const OwnedPiece& p : owned) {                              // ranges that no other rank writes
//     writer->add(p.parameter, StateKind::kWeight, p.in_parameter, bytes_of(p.weights));
//     writer->add(p.parameter, StateKind::kFirstMoment, p.in_parameter, bytes_of(p.first));
//   }
//   writer->add_blob("random", bytes_of(generator_state));
//   writer->finish();
//   // all ranks learn whether all of that was ok                    // barrier 2
//   if (rank == 0) ok = all_ok ? checkpoint::commit(plan, run_state) : (abandon(plan), failure);
//   if (rank == 0) checkpoint::prune(folder, step, keep);            // when commit() was ok
//
// At stage 0 every rank has everything: let rank r write Partition(elements, R).range(r) of each
// parameter (or rank 0 all), so that each element is written once. Reading does not care.
// In the background: snapshot, then Writer and finish() in a thread of its own; barrier 2 and commit()
// when all ranks have joined theirs.
//
// Errors: a full disk, a limit, missing permission or a broken disk give exit code 3 and name the
// file. Ranges outside of a tensor and the like are the caller's bugs (InternalError).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/checkpoint/disk.hpp"
#include "plimsoll/checkpoint/manifest.hpp"

namespace plimsoll::checkpoint {

// What is to be saved. The same on all ranks.
struct SavePlan {
  std::string folder;  // DIR, where the checkpoints are
  std::int64_t step = 0;
  std::int32_t ranks = 1;
  shard::Stage stage = shard::Stage::kNothing;
  // All tensors of the model, each once (no aliases), with the states they have; pieces are empty.
  // Positions in it are the `tensor` of Writer::add().
  std::vector<Tensor> tensors;
};

// Rank 0, before any rank opens its writer. Makes DIR when it is missing and an empty temporary
// folder; removes what interrupted saves and removals left in DIR.
Result<void> prepare(const SavePlan& plan, Disk& disk = real_disk());

// One rank's file. Nothing of it counts before finish(). A writer that is dropped before removes its
// file. Not thread-safe; any thread may own it.
class Writer {
 public:
  static Result<Writer> open(const SavePlan& plan, std::int32_t rank, Disk& disk = real_disk());
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) = delete;
  ~Writer();

  // Elements [begin, end) of a state of tensors[tensor], in its dtype. An empty range adds nothing.
  // Data is written in the order of the calls, in large blocks; it is not needed after the call.
  Result<void> add(std::size_t tensor, StateKind kind, const shard::Range& elements,
                   std::span<const std::byte> data);
  // Bytes of this rank under a name of its own, such as "random".
  Result<void> add_blob(const std::string& name, std::span<const std::byte> data);
  // Flushes to the disk and leaves the list of pieces for commit(). Nothing may be added after it.
  Result<void> finish();

  std::int64_t bytes_written() const;  // so far, padding between pieces included

 private:
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Rank 0, when all ranks have finished. Collects the ranks' lists, checks that together they cover every
// state of every tensor exactly once, writes the manifest, renames the folder and writes the marker,
// each flushed to the disk before the next. A folder of this step that is there already is replaced.
// After an Error the temporary folder is gone. An Error that names ranks: these have not finished.
Result<void> commit(const SavePlan& plan, const RunState& run, Disk& disk = real_disk());

// Rank 0, in place of commit(): removes the temporary folder. Ranks may still be writing to it.
void abandon(const SavePlan& plan) noexcept;

// Rank 0, after commit() of `step`. Of the checkpoints up to this step keeps the `keep` (at least 1)
// newest complete ones and removes what is older, complete or not. Later steps are not looked at:
// a run that went back to an earlier step may have damaged ones there.
Result<void> prune(const std::string& folder, std::int64_t step, std::int64_t keep);

// --- the end of a run

// Says in DIR that the run came to its regular end after `step` steps. A run that was killed, or left by
// exit code 0 in the middle, has no such mark: `checkpoint list` and resuming say so.
Result<void> mark_ended(const std::string& folder, std::int64_t step, Disk& disk = real_disk());
// At the start of a run, resumed or new.
Result<void> clear_ended(const std::string& folder);

}  // namespace plimsoll::checkpoint
