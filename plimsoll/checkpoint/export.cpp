#include "plimsoll/checkpoint/export.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/checkpoint/file.hpp"
#include "plimsoll/checkpoint/reader.hpp"
#include "plimsoll/checkpoint/safetensors_writer.hpp"
#include "plimsoll/checkpoint/weight_table.hpp"
#include "plimsoll/formats/export_config.hpp"
#include "plimsoll/formats/model_source.hpp"

namespace plimsoll::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeightsFile = "model.safetensors";
constexpr std::string_view kConfigFile = "config.json";

// One tensor of the output: of the checkpoint, or zeros.
struct Source {
  OutputTensor output;
  const Tensor* tensor = nullptr;  // null: zeros
  bool transposed = false;
};

std::int64_t elements(const Source& source) {
  return element_count(Tensor{source.output.name, source.output.shape, {}});
}

Result<std::vector<Source>> sources_of(const Manifest& manifest, const WeightTable& table,
                                       const std::string& where) {
  std::vector<Source> sources;
  network::DType dtype = network::DType::kFloat32;
  for (const Tensor& tensor : manifest.tensors) {
    const WeightName* name = table.find(tensor.name);
    const TensorState* state = tensor.find(StateKind::kWeight);
    if (name == nullptr || state == nullptr) {
      return fail(where, fmt::format("{} {}", tensor.name,
                                     name == nullptr ? "is no parameter of its model"
                                                     : "has no weights in this checkpoint"));
    }
    Source source{{name->theirs, state->dtype, tensor.shape}, &tensor, name->transposed};
    if (source.transposed) std::reverse(source.output.shape.begin(), source.output.shape.end());
    dtype = state->dtype;
    sources.push_back(std::move(source));
  }
  for (const ZeroWeight& zero : table.zeros) {
    sources.push_back({{zero.theirs, dtype, zero.shape}, nullptr, false});
  }
  return sources;
}

// [rows, columns] -> [columns, rows]
std::vector<std::byte> transposed(const std::vector<std::byte>& bytes, std::int64_t rows,
                                  std::int64_t columns, std::int64_t size) {
  std::vector<std::byte> result(bytes.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      std::memcpy(result.data() + (column * rows + row) * size,
                  bytes.data() + (row * columns + column) * size, static_cast<std::size_t>(size));
    }
  }
  return result;
}

Result<std::vector<std::byte>> data_of(const Source& source, Reader& reader) {
  const std::int64_t size = network::size_of(source.output.dtype);
  const std::int64_t count = elements(source);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * size));
  if (source.tensor == nullptr) return bytes;
  auto read = reader.read(source.tensor->name, StateKind::kWeight, {0, count}, bytes).and_then([&] {
    return reader.compare_checksums();
  });
  if (!read) return tl::unexpected<Error>(read.error());
  if (!source.transposed) return bytes;
  const auto& shape = source.tensor->shape;
  return transposed(bytes, shape.at(0), shape.at(1), size);
}

Result<void> write_weights(const std::string& folder, const std::vector<Source>& sources,
                           Reader& reader, Disk& disk) {
  std::vector<OutputTensor> outputs;
  for (const Source& source : sources) outputs.push_back(source.output);
  auto writer = SafetensorsWriter::create(folder + "/" + std::string(kWeightsFile), outputs, disk);
  if (!writer) return tl::unexpected<Error>(writer.error());
  for (const Source& source : sources) {
    const auto bytes = data_of(source, reader);
    if (!bytes) return tl::unexpected<Error>(bytes.error());
    if (auto written = writer->write(*bytes); !written) return written;
  }
  return writer->finish();
}

std::string dtype_text(const std::vector<Source>& sources) {
  std::set<std::string_view> names;
  for (const Source& source : sources) names.insert(name(source.output.dtype));
  return names.size() == 1 ? std::string(*names.begin()) : "mixed";
}

// --- where it goes

Result<void> check_out(const std::string& out, bool force) {
  std::error_code problem;
  if (!fs::exists(fs::symlink_status(out, problem))) return {};
  if (!fs::is_directory(out, problem)) {
    return fail(out, "is a file, expected a folder or a new name");
  }
  if (force || fs::is_empty(out, problem)) return {};
  return fail(out, "exists and is not empty, expected a new folder",
              "another folder, or --force to replace the model in it");
}

// Both files lie ready in `ready`.
Result<void> move_out(const std::string& ready, const std::string& out, Disk& disk) {
  std::error_code problem;
  if (!fs::exists(out, problem)) return rename_path(ready, out, disk);
  for (const std::string_view file : {kWeightsFile, kConfigFile}) {
    auto moved = rename_path(ready + "/" + std::string(file), out + "/" + std::string(file), disk);
    if (!moved) return moved;
  }
  return sync_folder(out, disk).and_then([&] { return remove_folder(ready); });
}

Result<void> write_out(const std::string& out, const std::vector<Source>& sources,
                       const std::string& config, Reader& reader, Disk& disk) {
  std::string ready = out;
  while (ready.size() > 1 && ready.ends_with('/')) ready.pop_back();
  ready += kTemporary;
  auto done = remove_folder(ready)
                  .and_then([&] { return make_folder(ready); })
                  .and_then([&] { return write_weights(ready, sources, reader, disk); })
                  .and_then([&] {
                    return write_whole_file(ready + "/" + std::string(kConfigFile), config, disk);
                  })
                  .and_then([&] { return move_out(ready, out, disk); });
  if (!done) static_cast<void>(remove_folder(ready));
  return done;
}

}  // namespace

Result<Exported> export_checkpoint(const std::string& checkpoint_folder, const std::string& out,
                                   bool force, Disk& disk) {
  if (auto free = check_out(out, force); !free) return tl::unexpected<Error>(free.error());
  auto reader = Reader::open(checkpoint_folder);
  if (!reader) return tl::unexpected<Error>(reader.error());
  const Manifest& manifest = reader->manifest();
  const auto spec = formats::load_described_model(manifest.run.model, checkpoint_folder);
  if (!spec) return tl::unexpected<Error>(spec.error());
  const auto table = weight_table(*spec);
  if (!table) return tl::unexpected<Error>(table.error());
  const auto sources = sources_of(manifest, *table, checkpoint_folder);
  if (!sources) return tl::unexpected<Error>(sources.error());
  const network::DType dtype =
      sources->empty() ? network::DType::kFloat32 : sources->front().output.dtype;
  const auto config = formats::export_config(*spec, manifest.run.model, dtype);
  if (!config) return tl::unexpected<Error>(config.error());
  if (auto done = write_out(out, *sources, *config, *reader, disk); !done) {
    return tl::unexpected<Error>(done.error());
  }
  Exported result;
  result.checkpoint = checkpoint_folder;
  result.step = manifest.step;
  result.dtype = dtype_text(*sources);
  for (const Source& source : *sources) {
    ++result.tensors;
    result.parameters += elements(source);
    if (source.tensor == nullptr) result.zeros += elements(source);
    result.bytes += elements(source) * network::size_of(source.output.dtype);
  }
  return result;
}

}  // namespace plimsoll::checkpoint
