// Writes a .safetensors file tensor by tensor, so that nobody has to hold the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/checkpoint/disk.hpp"
#include "plimsoll/checkpoint/file.hpp"
#include "plimsoll/network/dtype.hpp"

namespace plimsoll::checkpoint {

struct OutputTensor {
  std::string name;
  network::DType dtype = network::DType::kFloat32;
  std::vector<std::int64_t> shape;
};

class SafetensorsWriter {
 public:
  // Writes to PATH.tmp; `path` appears with finish(). Data follow in the order of `tensors`. The file
  // says that its layout is PyTorch's, which transformers asks for.
  static Result<SafetensorsWriter> create(const std::string& path,
                                          const std::vector<OutputTensor>& tensors,
                                          Disk& disk = real_disk());
  SafetensorsWriter(SafetensorsWriter&& other) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) = delete;
  ~SafetensorsWriter();  // without finish(): nothing is left

  // The next bytes of the data, in parts of any size.
  Result<void> write(std::span<const std::byte> bytes);
  // Flushes and renames. InternalError when the data are not complete.
  Result<void> finish();

 private:
  SafetensorsWriter(std::string path, OutputFile file, std::int64_t bytes, Disk& disk);

  std::string path_;  // empty: moved from, or finished
  OutputFile file_;
  std::int64_t bytes_;  // of the whole file
  Disk* disk_;
};

}  // namespace plimsoll::checkpoint
