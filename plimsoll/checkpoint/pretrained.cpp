#include "plimsoll/checkpoint/pretrained.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace plimsoll::checkpoint {
namespace {

using network::DType;

bool is_floating(DType dtype) {
  return dtype != DType::kBool && dtype != DType::kUInt8 && dtype != DType::kInt64;
}

std::vector<std::int64_t> reversed(std::vector<std::int64_t> shape) {
  std::reverse(shape.begin(), shape.end());
  return shape;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string without_base(const std::string& name, const std::string& base) {
  return name.starts_with(base) ? name.substr(base.size()) : name;
}

bool is_zero_weight(const WeightTable& table, const std::string& tensor) {
  return std::any_of(table.zeros.begin(), table.zeros.end(), [&](const ZeroWeight& zero) {
    return without_base(zero.theirs, table.base) == without_base(tensor, table.base);
  });
}

}  // namespace

std::vector<NamedShape> shapes_of(const std::vector<shard::Parameter>& parameters) {
  std::vector<NamedShape> shapes;
  for (const shard::Parameter& parameter : parameters) {
    shapes.push_back({parameter.name, parameter.shape});
  }
  return shapes;
}

Result<PretrainedWeights> PretrainedWeights::open(const std::string& path,
                                                  const network::NetworkSpec& spec,
                                                  const std::vector<NamedShape>& parameters) {
  const auto table = weight_table(spec);
  if (!table) return tl::unexpected<Error>(table.error());
  auto reader = SafetensorsReader::open(path);
  if (!reader) return tl::unexpected<Error>(reader.error());
  PretrainedWeights weights(*std::move(reader));
  for (const NamedShape& parameter : parameters) {
    if (auto found = weights.find(parameter, *table); !found) {
      return tl::unexpected<Error>(found.error());
    }
  }
  if (auto rest = weights.check_rest(spec, *table); !rest) {
    return tl::unexpected<Error>(rest.error());
  }
  return weights;
}

Result<void> PretrainedWeights::find(const NamedShape& parameter, const WeightTable& table) {
  const WeightName* name = table.find(parameter.name);
  if (name == nullptr) {
    check(is_adapter(parameter.name), "a parameter without a row in its family's table");
    found_.emplace_back();
    return {};
  }
  const formats::TensorEntry* tensor = reader_.find(name->theirs);
  if (tensor == nullptr) tensor = reader_.find(without_base(name->theirs, table.base));
  if (tensor == nullptr) {
    return fail(reader_.path(), fmt::format("has no tensor {}", name->theirs),
                "these are weights of another model");
  }
  const auto shape = name->transposed ? reversed(parameter.shape) : parameter.shape;
  if (tensor->shape != shape) {
    return fail(reader_.path(),
                fmt::format("{} has shape {}, expected {}", tensor->name, shape_text(tensor->shape),
                            shape_text(shape)),
                "these are weights of another model");
  }
  const auto dtype = dtype_of_safetensors(tensor->dtype);
  if (!dtype || !is_floating(*dtype)) {
    return fail(reader_.path(), fmt::format("{} has dtype {}, expected F64, F32, F16 or BF16",
                                            tensor->name, tensor->dtype));
  }
  Found found{tensor, *dtype};
  if (name->transposed) {
    found.rows = parameter.shape.at(0);
    found.columns = parameter.shape.at(1);
  }
  found_.push_back(found);
  return {};
}

// Biases of zero are the same function as no biases.
Result<void> PretrainedWeights::check_zero(const network::NetworkSpec& spec,
                                           const formats::TensorEntry& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
  if (auto read = reader_.read(tensor, {0, tensor.bytes}, bytes); !read) return read;
  const bool zero =
      std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
  if (zero) return {};
  return fail(
      reader_.path(),
      fmt::format("{} is not zero, expected zeros: {} has no such bias", tensor.name, spec.title),
      "a gpt2 model has it");
}

// A tensor that nobody reads may be what makes the model another one.
Result<void> PretrainedWeights::check_rest(const network::NetworkSpec& spec,
                                           const WeightTable& table) {
  std::set<std::string_view> used;
  for (const Found& found : found_) {
    if (found.tensor != nullptr) used.insert(found.tensor->name);
  }
  for (const formats::TensorEntry& tensor : reader_.tensors()) {
    if (used.contains(tensor.name)) continue;
    if (is_zero_weight(table, tensor.name)) {
      if (auto zero = check_zero(spec, tensor); !zero) return zero;
      continue;
    }
    if (is_no_parameter(spec, without_base(tensor.name, table.base))) continue;
    return fail(reader_.path(), fmt::format("{} is no parameter of {}", tensor.name, spec.title),
                "these are weights of another model");
  }
  return {};
}

Result<void> PretrainedWeights::read(std::size_t parameter, const shard::Range& elements,
                                     std::span<std::byte> out) {
  const Found& found = found_[parameter];
  const std::int64_t size = network::size_of(found.dtype);
  check(static_cast<std::int64_t>(out.size()) == elements.size() * size,
        "the buffer does not fit the range that is read");
  if (elements.empty()) return {};
  if (found.rows > 0) return read_transposed(found, elements, out);
  return reader_.read(*found.tensor, {elements.begin * size, elements.end * size}, out);
}

// Row r of ours is a column of theirs. The rows [first, last) that have some of the elements are a
// contiguous stretch of every row of theirs.
Result<void> PretrainedWeights::read_transposed(const Found& found, const shard::Range& elements,
                                                std::span<std::byte> out) {
  const std::int64_t size = network::size_of(found.dtype);
  const std::int64_t first = elements.begin / found.columns;
  const std::int64_t last = (elements.end + found.columns - 1) / found.columns;
  std::vector<std::byte> stretch(static_cast<std::size_t>((last - first) * size));
  for (std::int64_t column = 0; column < found.columns; ++column) {
    const std::int64_t begin = (column * found.rows + first) * size;
    const shard::Range bytes{begin, begin + (last - first) * size};
    if (auto done = reader_.read(*found.tensor, bytes, stretch); !done) return done;
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t element = row * found.columns + column;
      if (element < elements.begin || element >= elements.end) continue;
      std::memcpy(out.data() + (element - elements.begin) * size,
                  stretch.data() + (row - first) * size, static_cast<std::size_t>(size));
    }
  }
  return {};
}

}  // namespace plimsoll::checkpoint
