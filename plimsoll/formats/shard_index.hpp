// model.safetensors.index.json: which tensor lies in which shard.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/safetensors.hpp"

namespace plimsoll::formats {

// What index files are called, behind the name of their model.
inline constexpr std::string_view kIndexEnding = ".safetensors.index.json";

// The files that an index names, ascending, each once, as paths. Error: one is not there, no index.
Result<std::vector<std::string>> indexed_shards(const std::string& index);

// Compares an index with the tensors that its shards hold: tensors that are in one and not in the other
// are Errors.
Result<void> check_index(const std::string& index, std::span<const TensorEntry> tensors);

// Compares a folder's index, if it has one, with the tensors that its shards hold: a shard that was
// not downloaded, and tensors that are in one and not in the other, are Errors.
Result<void> check_shard_index(const std::string& folder, std::span<const TensorEntry> tensors);

}  // namespace plimsoll::formats
