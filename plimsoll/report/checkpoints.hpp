// The checkpoints of a run: which there are, what one holds, whether all are whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/checkpoint/verify.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

struct CheckpointState {
  checkpoint::Entry entry;
  checkpoint::Verification verification;  // of a temporary folder: nothing

  bool whole() const { return !entry.temporary && verification.findings.empty(); }
};

struct Checkpoints {
  std::string folder;   // as it was asked for
  bool single = false;  // it is one checkpoint, not the folder of a run
  checkpoint::Depth depth = checkpoint::Depth::kStructure;
  std::vector<CheckpointState> checkpoints;  // ascending by step
  std::optional<std::int64_t> ended;         // step after which the run ended; none: no end mark
  std::optional<std::string> last_words;     // of its ranks, when nobody was left to tell them

  const CheckpointState* newest_whole() const;  // null: there is none
  bool all_whole() const;                       // temporary folders do not count
};

// `folder` holds checkpoints, or is one. Errors: it is neither.
Result<Checkpoints> look_at_checkpoints(const std::string& folder, checkpoint::Depth depth);

std::string checkpoints_text(const Checkpoints& found, const TextStyle& style);
Json checkpoints_json(const Checkpoints& found);  // schema plimsoll.checkpoints/1

// One that is whole, in full.
std::string checkpoint_text(const CheckpointState& shown, const TextStyle& style);
Json checkpoint_json(const CheckpointState& shown);  // schema plimsoll.checkpoint_contents/1

}  // namespace plimsoll::report
