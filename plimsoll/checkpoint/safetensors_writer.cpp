#include "plimsoll/checkpoint/safetensors_writer.hpp"

#include <array>
#include <filesystem>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/checkpoint/manifest.hpp"
#include "plimsoll/checkpoint/safetensors_reader.hpp"

namespace plimsoll::checkpoint {
namespace {

// Data begin at a multiple of it, so that files can be mapped.
constexpr std::size_t kHeaderAlignment = 8;

struct Header {
  std::string text;
  std::int64_t data_bytes = 0;
};

Header header_of(const std::vector<OutputTensor>& tensors) {
  nlohmann::ordered_json json;
  json["__metadata__"] = {{"format", "pt"}};
  Header header;
  for (const OutputTensor& tensor : tensors) {
    std::int64_t bytes = network::size_of(tensor.dtype);
    for (std::int64_t size : tensor.shape) bytes = checked_mul(bytes, size);
    const std::int64_t end = checked_add(header.data_bytes, bytes);
    json[tensor.name] = {{"dtype", safetensors_name(tensor.dtype)},
                         {"shape", tensor.shape},
                         {"data_offsets", {header.data_bytes, end}}};
    header.data_bytes = end;
  }
  header.text = json.dump();
  header.text.resize(
      (header.text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return header;
}

std::string length_bytes(std::size_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((length >> (8 * i)) & 0xffU);
  return bytes;
}

std::string temporary(const std::string& path) { return path + std::string(kTemporary); }

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::string path, OutputFile file, std::int64_t bytes,
                                     Disk& disk)
    : path_(std::move(path)), file_(std::move(file)), bytes_(bytes), disk_(&disk) {}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&& other) noexcept
    : path_(std::exchange(other.path_, "")),
      file_(std::move(other.file_)),
      bytes_(other.bytes_),
      disk_(other.disk_) {}

SafetensorsWriter::~SafetensorsWriter() {
  if (!path_.empty()) ::unlink(temporary(path_).c_str());
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                    const std::vector<OutputTensor>& tensors,
                                                    Disk& disk) {
  const Header header = header_of(tensors);
  ::unlink(temporary(path).c_str());
  auto file = OutputFile::create(temporary(path), disk);
  if (!file) return tl::unexpected<Error>(file.error());
  const std::string start = length_bytes(header.text.size()) + header.text;
  const std::int64_t bytes = static_cast<std::int64_t>(start.size()) + header.data_bytes;
  SafetensorsWriter writer(path, *std::move(file), bytes, disk);
  if (auto written = writer.file_.write(bytes_of(start)); !written) {
    return tl::unexpected<Error>(written.error());
  }
  return writer;
}

Result<void> SafetensorsWriter::write(std::span<const std::byte> bytes) {
  return file_.write(bytes);
}

Result<void> SafetensorsWriter::finish() {
  check(file_.size() == bytes_, "a .safetensors file without all of its data");
  auto done = file_.finish().and_then([&] { return rename_path(temporary(path_), path_, *disk_); });
  if (!done) return done;
  const std::string folder = std::filesystem::path(std::exchange(path_, "")).parent_path().string();
  return sync_folder(folder.empty() ? "." : folder, *disk_);
}

}  // namespace plimsoll::checkpoint
