// manifest.json and back.
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/checkpoint/manifest.hpp"
#include "plimsoll/checkpoint/pieces_json.hpp"
#include "plimsoll/formats/json_text.hpp"

namespace plimsoll::checkpoint {
namespace {

using nlohmann::json;

json state_json(const TensorState& state) {
  json pieces = json::array();
  for (const Piece& piece : state.pieces) pieces.push_back(piece_json(piece));
  return {{"kind", name(state.kind)}, {"dtype", name(state.dtype)}, {"pieces", std::move(pieces)}};
}

json tensor_json(const Tensor& tensor) {
  json states = json::array();
  for (const TensorState& state : tensor.states) states.push_back(state_json(state));
  return {{"name", tensor.name}, {"shape", tensor.shape}, {"states", std::move(states)}};
}

json run_json(const RunState& run) {
  return {{"model", run.model},       {"optimizer_steps", run.optimizer_steps},
          {"schedule", run.schedule}, {"data", run.data},
          {"settings", run.settings}, {"progress", run.progress}};
}

json files_json(const Manifest& manifest) {
  json files = json::array();
  for (std::size_t rank = 0; rank < manifest.file_bytes.size(); ++rank) {
    files.push_back({{"name", rank_file(static_cast<std::int32_t>(rank))},
                     {"bytes", manifest.file_bytes[rank]}});
  }
  return files;
}

// --- reading

class ManifestReader {
 public:
  explicit ManifestReader(JsonFlaw& flaw) : flaw_(flaw) {}

  Manifest read(const json& document) {
    Manifest m;
    JsonObject object(document, "", flaw_);
    if (!read_format(object)) return m;
    m.step = object.whole("step");
    m.ranks = bounded<std::int32_t>(object, "ranks", std::numeric_limits<std::int32_t>::max());
    m.stage = static_cast<shard::Stage>(bounded<std::uint8_t>(object, "stage", 3));
    each(object, "files", [&](const json& value, const std::string& path) {
      m.file_bytes.push_back(read_file(value, path, m.file_bytes.size()));
    });
    each(object, "tensors", [&](const json& value, const std::string& path) {
      m.tensors.push_back(read_tensor(value, path));
    });
    each(object, "blobs", [&](const json& value, const std::string& path) {
      m.blobs.push_back(read_blob(value, path, flaw_));
    });
    m.run = read_run(object.object("run"), object.path("run"));
    object.finish();
    return m;
  }

 private:
  // Nothing else of another format can be judged.
  bool read_format(JsonObject& object) {
    const std::string format = object.text("format");
    if (!flaw_.found() && format != kFormat) {
      flaw_.refuse(object.path("format"), json(format),
                   fmt::format("\"{}\": another version of plimsoll wrote it", kFormat));
    }
    return !flaw_.found();
  }

  template <class T>
  T bounded(JsonObject& object, const char* key, std::int64_t most) {
    const std::int64_t value = object.whole(key);
    if (value <= most) return static_cast<T>(value);
    flaw_.refuse(object.path(key), json(value), fmt::format("at most {}", most));
    return T{};
  }

  template <class Function>
  void each(JsonObject& object, const char* key, Function&& function) {
    std::size_t index = 0;
    for (const json& value : object.list(key)) {
      if (flaw_.found()) return;
      function(value, fmt::format("{}/{}", object.path(key), index++));
    }
  }

  std::int64_t read_file(const json& value, const std::string& path, std::size_t rank) {
    JsonObject object(value, path, flaw_);
    const std::string file = object.text("name");
    const std::string expected = rank_file(static_cast<std::int32_t>(rank));
    if (file != expected) flaw_.refuse(object.path("name"), json(file), expected);
    const std::int64_t bytes = object.whole("bytes");
    object.finish();
    return bytes;
  }

  Tensor read_tensor(const json& value, const std::string& path) {
    JsonObject object(value, path, flaw_);
    Tensor tensor;
    tensor.name = object.text("name");
    for (const json& size : object.list("shape")) {
      tensor.shape.push_back(whole_or_minus_one(size));
      if (tensor.shape.back() < 0) {
        flaw_.refuse(object.path("shape"), size, "whole numbers of at least 0");
      }
    }
    each(object, "states", [&](const json& state, const std::string& state_path) {
      tensor.states.push_back(read_state(state, state_path));
    });
    object.finish();
    return tensor;
  }

  TensorState read_state(const json& value, const std::string& path) {
    JsonObject object(value, path, flaw_);
    TensorState state;
    const std::string kind = object.text("kind");
    const auto known_kind = parse_state_kind(kind);
    if (!known_kind) flaw_.refuse(object.path("kind"), json(kind), "a kind of state");
    const std::string dtype = object.text("dtype");
    const auto known_dtype = network::parse_dtype(dtype);
    if (!known_dtype || name(*known_dtype) != dtype) {
      flaw_.refuse(object.path("dtype"), json(dtype), "a dtype such as fp32");
    }
    state.kind = known_kind.value_or(StateKind::kWeight);
    state.dtype = known_dtype.value_or(network::DType::kFloat32);
    each(object, "pieces", [&](const json& piece, const std::string& piece_path) {
      const auto read = read_piece(piece, network::size_of(state.dtype), piece_path, flaw_);
      if (read) state.pieces.push_back(*read);
    });
    object.finish();
    return state;
  }

  RunState read_run(const json& value, const std::string& path) {
    JsonObject object(value, path, flaw_);
    RunState run;
    run.model = object.text("model");
    run.optimizer_steps = object.whole("optimizer_steps");
    run.schedule = read_fields(object, "schedule");
    run.data = read_fields(object, "data");
    run.settings = read_fields(object, "settings");
    run.progress = read_fields(object, "progress");
    object.finish();
    return run;
  }

  Fields read_fields(JsonObject& object, const char* key) {
    Fields fields;
    for (const auto& item : object.object(key).items()) {
      if (!item.value().is_string()) {
        flaw_.refuse(object.path(key) + formats::json_step(item.key()), item.value(), "text");
        return fields;
      }
      fields.emplace(item.key(), item.value().get<std::string>());
    }
    return fields;
  }

  JsonFlaw& flaw_;
};

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  json tensors = json::array();
  for (const Tensor& tensor : manifest.tensors) tensors.push_back(tensor_json(tensor));
  json blobs = json::array();
  for (const Blob& blob : manifest.blobs) blobs.push_back(blob_json(blob));
  return json_line({{"format", kFormat},
                    {"step", manifest.step},
                    {"ranks", manifest.ranks},
                    {"stage", static_cast<int>(manifest.stage)},
                    {"files", files_json(manifest)},
                    {"tensors", std::move(tensors)},
                    {"blobs", std::move(blobs)},
                    {"run", run_json(manifest.run)}});
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view where) {
  if (static_cast<std::int64_t>(text.size()) > kLargestManifest) {
    return fail(std::string(where), fmt::format("has more than {} bytes", kLargestManifest));
  }
  const auto document = formats::parse_json(text, where);
  if (!document) return tl::unexpected<Error>(document.error());
  JsonFlaw flaw(where);
  Manifest manifest = ManifestReader(flaw).read(*document);
  return flaw.result().and_then([&] { return check_manifest(manifest, where); }).map([&] {
    return std::move(manifest);
  });
}

}  // namespace plimsoll::checkpoint
