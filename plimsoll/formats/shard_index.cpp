#include "plimsoll/formats/shard_index.hpp"

#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/text_file.hpp"

namespace plimsoll::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// An index of the largest published models has a few megabytes.
constexpr std::size_t kLargestIndex = std::size_t{64} << 20U;

Result<void> check_shards(const std::string& folder, const std::string& index, const json& map) {
  std::set<std::string> shards;
  for (const auto& item : map.items()) {
    if (!item.value().is_string()) {
      return fail(json_where(index, "/weight_map" + json_step(item.key())),
                  json_value_text(item.value()) + ", expected the name of a file");
    }
    shards.insert(item.value().get<std::string>());
  }
  for (const std::string& shard : shards) {
    std::error_code problem;
    if (fs::exists(fs::path(folder) / shard, problem)) continue;
    return fail(index, fmt::format("names the shard {}, which is not there", shard),
                "the folder is not complete");
  }
  return {};
}

}  // namespace

Result<void> check_shard_index(const std::string& folder, std::span<const TensorEntry> tensors) {
  const std::string index = (fs::path(folder) / "model.safetensors.index.json").string();
  std::error_code problem;
  if (!fs::exists(index, problem)) return {};
  const auto text = read_text_file(index, kLargestIndex);
  if (!text) return tl::unexpected<Error>(text.error());
  const auto document = parse_json(*text, index);
  if (!document) return tl::unexpected<Error>(document.error());
  const auto map = document->is_object() ? document->find("weight_map") : document->end();
  if (map == document->end() || !map->is_object()) {
    return fail(index, "expected an object with a weight_map from tensors to shards");
  }
  if (auto shards = check_shards(folder, index, *map); !shards) return shards;
  for (const TensorEntry& tensor : tensors) {
    if (map->contains(tensor.name)) continue;
    return fail(index, fmt::format("has no {}, which a shard holds", tensor.name),
                "a folder should hold the shards of one model");
  }
  if (map->size() == tensors.size()) return {};
  return fail(index,
              fmt::format("lists {} tensors, the shards hold {}", map->size(), tensors.size()));
}

}  // namespace plimsoll::formats
