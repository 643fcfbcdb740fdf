// Reads ranges of tensors from .safetensors files: one, a folder of shards, or those that an index
// names. What headers must be like: formats/safetensors.hpp. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/safetensors.hpp"
#include "plimsoll/network/dtype.hpp"
#include "plimsoll/shard/partition.hpp"

namespace plimsoll::checkpoint {

class InputFile;

class SafetensorsReader {
 public:
  // A file, a folder whose index, if there is one, fits, or an index (.safetensors.index.json), whose
  // shards are read and no other files beside them. Reads headers alone.
  static Result<SafetensorsReader> open(const std::string& path);
  SafetensorsReader(SafetensorsReader&&) noexcept;
  SafetensorsReader& operator=(SafetensorsReader&&) = delete;
  ~SafetensorsReader();

  const std::vector<formats::TensorEntry>& tensors() const { return tensors_; }
  const formats::TensorEntry* find(std::string_view name) const;  // null: there is none
  const std::string& path() const { return path_; }

  // Bytes [begin, end) of a tensor's data. Precondition: it is one of tensors().
  Result<void> read(const formats::TensorEntry& tensor, const shard::Range& bytes,
                    std::span<std::byte> out);
  std::int64_t bytes_read() const { return bytes_read_; }

 private:
  struct Place {
    std::size_t file = 0;
    std::int64_t offset = 0;
  };
  explicit SafetensorsReader(std::string path);
  Result<void> add_file(const std::string& path);

  std::string path_;
  std::vector<formats::TensorEntry> tensors_;
  std::vector<Place> places_;  // by tensor
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<std::unique_ptr<InputFile>> files_;
  std::int64_t bytes_read_ = 0;
};

// "F32" -> kFloat32; none for types that are no parameters here.
std::optional<network::DType> dtype_of_safetensors(std::string_view dtype);
std::string_view safetensors_name(network::DType dtype);

}  // namespace plimsoll::checkpoint
