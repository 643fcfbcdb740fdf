#include "plimsoll/checkpoint/safetensors_reader.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/checkpoint/file.hpp"
#include "plimsoll/formats/shard_index.hpp"

namespace plimsoll::checkpoint {
namespace {

namespace fs = std::filesystem;
using network::DType;

constexpr std::array<std::pair<std::string_view, DType>, 7> kDtypes = {{
    {"F64", DType::kFloat64},
    {"F32", DType::kFloat32},
    {"F16", DType::kFloat16},
    {"BF16", DType::kBFloat16},
    {"I64", DType::kInt64},
    {"U8", DType::kUInt8},
    {"BOOL", DType::kBool},
}};

bool is_index(const std::string& path) { return path.ends_with(formats::kIndexEnding); }

Result<std::vector<std::string>> files_of(const std::string& path) {
  if (is_index(path)) return formats::indexed_shards(path);
  std::error_code problem;
  if (!fs::is_directory(path, problem)) return std::vector<std::string>{path};
  // Shards that do not fit each other or their index.
  const auto all = formats::read_safetensors_folder(path);
  if (!all) return tl::unexpected<Error>(all.error());
  std::vector<std::string> files;
  for (fs::directory_iterator it(path, problem); !problem && it != fs::directory_iterator();
       it.increment(problem)) {
    if (it->path().extension() == ".safetensors") files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::optional<DType> dtype_of_safetensors(std::string_view dtype) {
  for (const auto& [name, type] : kDtypes) {
    if (name == dtype) return type;
  }
  return std::nullopt;
}

std::string_view safetensors_name(DType dtype) {
  for (const auto& [name, type] : kDtypes) {
    if (type == dtype) return name;
  }
  return "";
}

SafetensorsReader::SafetensorsReader(std::string path) : path_(std::move(path)) {}
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;
SafetensorsReader::~SafetensorsReader() = default;

Result<SafetensorsReader> SafetensorsReader::open(const std::string& path) {
  const auto files = files_of(path);
  if (!files) return tl::unexpected<Error>(files.error());
  SafetensorsReader reader(path);
  for (const std::string& file : *files) {
    if (auto added = reader.add_file(file); !added) return tl::unexpected<Error>(added.error());
  }
  if (!is_index(path)) return reader;
  if (auto fits = formats::check_index(path, reader.tensors()); !fits) {
    return tl::unexpected<Error>(fits.error());
  }
  return reader;
}

// The data lie behind the header without gaps, in the order in which headers are read.
Result<void> SafetensorsReader::add_file(const std::string& path) {
  const auto tensors = formats::read_safetensors_header(path);
  if (!tensors) return tl::unexpected<Error>(tensors.error());
  auto file = InputFile::open(path);
  if (!file) return tl::unexpected<Error>(file.error());
  std::int64_t data = 0;
  for (const formats::TensorEntry& tensor : *tensors) data += tensor.bytes;
  std::int64_t offset = file->size() - data;
  for (const formats::TensorEntry& tensor : *tensors) {
    by_name_[tensor.name] = tensors_.size();
    tensors_.push_back(tensor);
    places_.push_back({files_.size(), offset});
    offset += tensor.bytes;
  }
  files_.push_back(std::make_unique<InputFile>(*std::move(file)));
  return {};
}

const formats::TensorEntry* SafetensorsReader::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

Result<void> SafetensorsReader::read(const formats::TensorEntry& tensor, const shard::Range& bytes,
                                     std::span<std::byte> out) {
  const auto found = by_name_.find(tensor.name);
  check(found != by_name_.end(), "a tensor of another file");
  check(bytes.begin >= 0 && bytes.end <= tensor.bytes, "bytes beyond a tensor");
  check(static_cast<std::int64_t>(out.size()) == bytes.size(), "a buffer of another size");
  const Place& place = places_[found->second];
  bytes_read_ += bytes.size();
  return files_[place.file]->read(place.offset + bytes.begin, out);
}

}  // namespace plimsoll::checkpoint
