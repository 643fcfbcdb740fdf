// model.safetensors.index.json: which tensor lies in which shard.
#pragma once

#include <span>
#include <string>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/safetensors.hpp"

namespace plimsoll::formats {

// Compares a folder's index, if it has one, with the tensors that its shards hold: a shard that was
// not downloaded, and tensors that are in one and not in the other, are Errors.
Result<void> check_shard_index(const std::string& folder, std::span<const TensorEntry> tensors);

}  // namespace plimsoll::formats
