// Headers of .safetensors files. The first two bytes are the size of the data that follows.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plimsoll/formats/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view header(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::int64_t data_bytes = data[0] + 256 * data[1];
  const auto tensors = plimsoll::formats::parse_safetensors_header(header, data_bytes, "file");
  if (!tensors) return 0;
  std::int64_t bytes = 0;
  for (const auto& count : plimsoll::formats::count_by_dtype(*tensors)) bytes += count.bytes;
  plimsoll::check(bytes == data_bytes, "tensors do not cover the data");
  return 0;
}
