// Whether a checkpoint is whole, and which of several is the newest that is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/checkpoint/manifest.hpp"

namespace plimsoll::checkpoint {

// One thing that is wrong.
struct Finding {
  std::string file;   // in the checkpoint's folder; empty: the folder itself
  std::string piece;  // piece_name(), or "blob random of rank 2", or "between pieces"; may be empty
  std::string what;
};
// "rank-0001.bin: wte.weight weight [0, 12): checksum ..., expected ...".
std::string finding_text(const Finding& finding);

enum class Depth : std::uint8_t {
  kStructure,  // marker, manifest, which files there are and how long they are
  kContents,   // and every byte of them
};

struct Verification {
  std::string folder;
  std::optional<Manifest> manifest;  // none: it could not be read
  std::int64_t bytes = 0;            // of the files that were looked at
  std::vector<Finding> findings;     // none: the checkpoint is whole
};

// Reads all files to the end with Depth::kContents, damaged or not. Every changed byte, every missing,
// cut, longer or foreign file is found.
Verification verify(const std::string& checkpoint_folder, Depth depth);

// What DIR holds, one entry per folder of a step.
struct Entry {
  std::string folder;  // path
  std::int64_t step = 0;
  bool temporary = false;  // NAME.tmp: a save in progress or an interrupted one
};
// Ascending by step, a temporary one behind the one of its step. Other names are not looked at. Error:
// DIR cannot be read; a missing one is empty.
Result<std::vector<Entry>> list_checkpoints(const std::string& folder);

struct Skipped {
  std::string folder;
  std::string reason;       // the first finding
  bool unfinished = false;  // never was a checkpoint: its save did not come to the marker
};
struct Newest {
  std::optional<Entry> found;    // none: there is no valid checkpoint
  std::vector<Skipped> skipped;  // newer ones, newest first
};
// The newest complete and valid checkpoint in DIR, and what had to be skipped to get there. One rank
// calls it and tells the others. With kContents it reads the newest one once, whole.
Result<Newest> newest_valid(const std::string& folder, Depth depth = Depth::kContents);

// After how many steps the run in DIR came to its regular end; none: it did not.
std::optional<std::int64_t> ended_at(const std::string& folder);

}  // namespace plimsoll::checkpoint
