// When a run writes checkpoints, and how: at once, or by a thread from a copy while training goes on.
//
// [Note: saving in the background] The copy is made between two steps; that and the next commit are all
// that training waits for. Each rank's thread writes its file; no thread but the rank's own uses the
// communicator, so ranks tell each other with every step's losses that their file is written, and the
// step at which all have said so makes it a checkpoint. A save that is due earlier waits for the one
// before.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "plimsoll/checkpoint/writer.hpp"
#include "plimsoll/engine/zero/sharder.hpp"

namespace plimsoll::engine {

struct SaveOptions {
  std::string folder;             // where checkpoints are; empty: none are written or read
  std::int64_t every_steps = 0;   // 0: not by steps
  std::chrono::seconds every{0};  // by rank 0's clock; 0: not by time
  std::int64_t keep = 2;          // so many complete ones stay, at least 1
  bool resume = false;            // from the newest one in the folder
};

// Per rank. Methods that say so are collective. A save that fails on a rank throws TrainingFailed on all of
// them, naming that rank and on it the file and what the system says; checkpoints that were complete stay as
// they are.
class Saver {
 public:
  // `sharder` outlives it. `snapshot`: memory for the copy; undefined: saves at once.
  Saver(const SaveOptions& options, const zero::Sharder& sharder, at::Tensor snapshot);
  // Waits for the thread. A save that is not finished is given up.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  bool due(std::int64_t step) const {
    return options_.every_steps > 0 && step % options_.every_steps == 0;
  }
  bool due_by_time() const;
  // True when this rank's thread has nothing left to write.
  bool written() const { return !open_ || open_->done.load(); }

  // Saves what the run is after `step` steps. Collective.
  void save(std::int64_t step, const checkpoint::RunState& run);
  // The save that is under way becomes a checkpoint, when there is one. Collective.
  void finish();

 private:
  struct Save {
    checkpoint::SavePlan plan;
    checkpoint::RunState run;
    Result<void> result;
    std::atomic<bool> done{false};
    std::thread thread;
  };

  // All ranks tell whether a part of the save went well for them. Collective.
  void agree(const Result<void>& own, std::int64_t step) const;

  const SaveOptions options_;
  const zero::Sharder& sharder_;
  comm::Communicator& world_;
  const at::Tensor snapshot_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::optional<Save> open_;
};

}  // namespace plimsoll::engine
