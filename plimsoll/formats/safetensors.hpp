// The header of .safetensors files: which tensors there are, without reading any weight.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"

namespace plimsoll::formats {

struct TensorEntry {
  std::string name;
  std::string dtype;  // as the file spells it: "F32", "BF16", "F4" ...
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;  // product of the shape
  std::int64_t bytes = 0;     // what they occupy in the file
};

// The tensors of one file, in the order of their data. Checked: the header's length (at most
// 100 MB and inside the file), keys given once, known dtypes, bytes equal to shape times dtype, and
// data that covers the rest of the file without gap or overlap.
Result<std::vector<TensorEntry>> read_safetensors_header(const std::string& path);

// The tensors of all *.safetensors files in a folder, shards in order of file name. A tensor that
// two files hold is an Error, and so is an index (shard_index.hpp) that does not fit.
Result<std::vector<TensorEntry>> read_safetensors_folder(const std::string& path);

// The checks on a header's JSON alone. `data_bytes`: what follows the header in the file.
Result<std::vector<TensorEntry>> parse_safetensors_header(std::string_view header,
                                                          std::int64_t data_bytes,
                                                          std::string_view where);

struct DtypeCount {
  std::string dtype;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  // Floating point of 8 bits and more, one number per element: these are parameters. Integers,
  // bools and narrower types hold packed values, codes, scales or masks; how many parameters they
  // stand for is not in the header, so they are listed but not counted.
  bool parameters = false;
};

// Elements by dtype, in order of first appearance.
std::vector<DtypeCount> count_by_dtype(std::span<const TensorEntry> tensors);

}  // namespace plimsoll::formats
