// A checkpoint of any number of ranks as one model that transformers loads.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/base/error.hpp"
#include "plimsoll/checkpoint/disk.hpp"

namespace plimsoll::checkpoint {

struct Exported {
  std::string checkpoint;  // folder that was read
  std::int64_t step = 0;
  std::int64_t tensors = 0;     // of model.safetensors
  std::int64_t parameters = 0;  // elements of them
  std::int64_t zeros = 0;       // of these, what transformers has and plimsoll's model does without
  std::int64_t bytes = 0;       // of model.safetensors
  std::string dtype;            // of the weights, as they are stored: "fp32", or "mixed"
};

// Writes OUT/model.safetensors and OUT/config.json from a checkpoint's folder. Checks every byte that it
// reads; holds one tensor at a time. OUT must not exist, or be empty, unless `force`: then the two files
// in it are replaced. Errors leave OUT as it was: no such checkpoint or a damaged one, a model that
// has no table of names, OUT exists, the disk is full.
Result<Exported> export_checkpoint(const std::string& checkpoint_folder, const std::string& out,
                                   bool force, Disk& disk = real_disk());

}  // namespace plimsoll::checkpoint
