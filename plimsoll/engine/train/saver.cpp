#include "plimsoll/engine/train/saver.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "plimsoll/engine/checkpoint/sharded_state.hpp"
#include "plimsoll/engine/run/random_state.hpp"
#include "plimsoll/engine/train/failure.hpp"

namespace plimsoll::engine {

Saver::Saver(const SaveOptions& options, const zero::Sharder& sharder, at::Tensor snapshot)
    : options_(options),
      sharder_(sharder),
      world_(sharder.world()),
      snapshot_(std::move(snapshot)) {}

Saver::~Saver() {
  if (!open_) return;
  if (open_->thread.joinable()) open_->thread.join();
  if (world_.rank() == 0) checkpoint::abandon(open_->plan);
}

bool Saver::due_by_time() const {
  if (options_.every.count() == 0) return false;
  return std::chrono::steady_clock::now() - last_ >= options_.every;
}

// Nobody goes on as if a save had succeeded that has failed elsewhere.
void Saver::agree(const Result<void>& own, std::int64_t step) const {
  const std::int64_t code = own ? 0 : static_cast<std::int64_t>(own.error().code);
  std::vector<std::int64_t> codes(static_cast<std::size_t>(world_.size()));
  world_
      .all_gather(comm::view(std::span<const std::int64_t>(&code, 1)),
                  comm::view(std::span<std::int64_t>(codes)), {"checkpoint", step})
      .wait();
  const auto failed = std::find_if(codes.begin(), codes.end(), [](auto one) { return one != 0; });
  if (failed == codes.end()) return;
  comm::Cause cause;
  cause.rank = cause.reporter = static_cast<int>(failed - codes.begin());
  cause.operation = "save";
  cause.unit = "checkpoint";
  cause.step = step;
  const bool mine = cause.rank == world_.rank();
  cause.text = mine ? format_error(own.error()) : "could not write its part of the checkpoint";
  throw TrainingFailed(cause, static_cast<ExitCode>(*failed));
}

void Saver::save(std::int64_t step, const checkpoint::RunState& run) {
  finish();
  open_.emplace();
  Save& save = *open_;
  save.plan = {options_.folder, step, world_.size(), sharder_.settings().stage,
               tensors_of(sharder_)};
  save.run = run;
  last_ = std::chrono::steady_clock::now();
  Result<void> prepared;
  if (world_.rank() == 0) prepared = checkpoint::prepare(save.plan);
  agree(prepared, step);
  std::vector<SavedPiece> pieces = share_of(sharder_);
  if (snapshot_.defined()) copy_into(snapshot_, pieces);
  auto write = [&save, rank = world_.rank(), pieces = std::move(pieces), random = random_state()] {
    save.result = write_share(save.plan, rank, pieces, random);
    save.done.store(true);
  };
  if (snapshot_.defined()) {
    save.thread = std::thread(std::move(write));
  } else {
    write();
    finish();
  }
}

void Saver::finish() {
  if (!open_) return;
  Save& save = *open_;
  if (save.thread.joinable()) save.thread.join();
  agree(save.result, save.plan.step);
  Result<void> committed;
  if (world_.rank() == 0) {
    committed = checkpoint::commit(save.plan, save.run).and_then([&] {
      return checkpoint::prune(options_.folder, save.plan.step, options_.keep);
    });
  }
  agree(committed, save.plan.step);
  open_.reset();
}

}  // namespace plimsoll::engine
