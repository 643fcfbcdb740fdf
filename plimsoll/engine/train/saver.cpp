#include "plimsoll/engine/train/saver.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

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

void Saver::expect(const Result<void>& result) const {
  if (!result) throw std::runtime_error(format_error(result.error()));
}

void Saver::save(std::int64_t step, const checkpoint::RunState& run) {
  finish();
  open_.emplace();
  Save& save = *open_;
  save.plan = {options_.folder, step, world_.size(), sharder_.settings().stage,
               tensors_of(sharder_)};
  save.run = run;
  begun_step_ = step;
  last_ = std::chrono::steady_clock::now();
  if (world_.rank() == 0) expect(checkpoint::prepare(save.plan));
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
  expect(save.result);
  world_.barrier({"checkpoint", save.plan.step}).wait();
  if (world_.rank() == 0) {
    expect(checkpoint::commit(save.plan, save.run));
    expect(checkpoint::prune(options_.folder, save.plan.step, options_.keep));
  }
  saved_step_ = save.plan.step;
  open_.reset();
}

}  // namespace plimsoll::engine
