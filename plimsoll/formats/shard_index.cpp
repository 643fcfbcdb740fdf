#include "plimsoll/formats/shard_index.hpp"

#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

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

struct Index {
  json document;
  const json& map() const { return document.at("weight_map"); }
};

Result<Index> read_index(const std::string& index) {
  const auto text = read_text_file(index, kLargestIndex);
  if (!text) return tl::unexpected<Error>(text.error());
  auto document = parse_json(*text, index);
  if (!document) return tl::unexpected<Error>(document.error());
  const auto map = document->is_object() ? document->find("weight_map") : document->end();
  if (map == document->end() || !map->is_object()) {
    return fail(index, "expected an object with a weight_map from tensors to shards");
  }
  return Index{*std::move(document)};
}

Result<std::vector<std::string>> shards_of(const std::string& index, const json& map) {
  std::set<std::string> shards;
  for (const auto& item : map.items()) {
    if (!item.value().is_string()) {
      return fail(json_where(index, "/weight_map" + json_step(item.key())),
                  json_value_text(item.value()) + ", expected the name of a file");
    }
    shards.insert(item.value().get<std::string>());
  }
  std::vector<std::string> paths;
  for (const std::string& shard : shards) {
    paths.push_back((fs::path(index).parent_path() / shard).string());
    std::error_code problem;
    if (fs::exists(paths.back(), problem)) continue;
    return fail(index, fmt::format("names the shard {}, which is not there", shard),
                "the folder is not complete");
  }
  return paths;
}

}  // namespace

Result<std::vector<std::string>> indexed_shards(const std::string& index) {
  const auto read = read_index(index);
  if (!read) return tl::unexpected<Error>(read.error());
  return shards_of(index, read->map());
}

Result<void> check_index(const std::string& index, std::span<const TensorEntry> tensors) {
  const auto read = read_index(index);
  if (!read) return tl::unexpected<Error>(read.error());
  const json& map = read->map();
  if (auto shards = shards_of(index, map); !shards) return tl::unexpected<Error>(shards.error());
  for (const TensorEntry& tensor : tensors) {
    if (map.contains(tensor.name)) continue;
    return fail(index, fmt::format("has no {}, which a shard holds", tensor.name),
                "a folder should hold the shards of one model");
  }
  if (map.size() == tensors.size()) return {};
  return fail(index,
              fmt::format("lists {} tensors, the shards hold {}", map.size(), tensors.size()));
}

Result<void> check_shard_index(const std::string& folder, std::span<const TensorEntry> tensors) {
  const std::string index = (fs::path(folder) / "model.safetensors.index.json").string();
  std::error_code problem;
  if (!fs::exists(index, problem)) return {};
  return check_index(index, tensors);
}

}  // namespace plimsoll::formats
