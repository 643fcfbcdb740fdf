#include "plimsoll/engine/train/saver.hpp"

#include <utility>
#include <vector>

#include "plimsoll/base/or_throw.hpp"
#include "plimsoll/engine/checkpoint/sharded_state.hpp"
#include "plimsoll/engine/run/random_state.hpp"

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

void Saver::save(std::int64_t step, const checkpoint::RunState& run) {
  finish();
  open_.emplace();
  Save& save = *open_;
  save.plan = {options_.folder, step, world_.size(), sharder_.settings().stage,
               tensors_of(sharder_)};
  save.run = run;
  last_ = std::chrono::steady_clock::now();
  if (world_.rank() == 0) or_throw(checkpoint::prepare(save.plan));
  world_.barrier({"checkpoint", step}).wait();
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
  or_throw(save.result);
  world_.barrier({"checkpoint", save.plan.step}).wait();
  if (world_.rank() == 0) {
    or_throw(checkpoint::commit(save.plan, save.run));
    or_throw(checkpoint::prune(options_.folder, save.plan.step, options_.keep));
  }
  open_.reset();
}

}  // namespace plimsoll::engine
