// One checkpoint in full.
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/report/checkpoints.hpp"

namespace plimsoll::report {
namespace {

using checkpoint::Fields;
using checkpoint::Manifest;
using checkpoint::StateKind;
using checkpoint::Tensor;
using checkpoint::TensorState;

// Sums over tensors of one kind and dtype.
struct Share {
  std::int64_t tensors = 0;
  std::int64_t pieces = 0;
  std::int64_t bytes = 0;
};
using Shares = std::map<std::pair<StateKind, network::DType>, Share>;

Shares shares_of(const Manifest& manifest) {
  Shares shares;
  for (const Tensor& tensor : manifest.tensors) {
    for (const TensorState& state : tensor.states) {
      Share& share = shares[{state.kind, state.dtype}];
      ++share.tensors;
      share.pieces += static_cast<std::int64_t>(state.pieces.size());
      share.bytes += element_count(tensor) * network::size_of(state.dtype);
    }
  }
  return shares;
}

std::string shares_text(const Manifest& manifest, const TextStyle& style) {
  Table table(
      {{"state", Align::kLeft}, {"dtype", Align::kLeft}, {"tensors"}, {"pieces"}, {"bytes"}});
  for (const auto& [key, share] : shares_of(manifest)) {
    table.row({std::string(name(key.first)), std::string(name(key.second)), grouped(share.tensors),
               grouped(share.pieces), grouped(share.bytes)});
  }
  std::int64_t blob_bytes = 0;
  for (const checkpoint::Blob& blob : manifest.blobs) blob_bytes += blob.place.bytes;
  table.row({"blobs", "", "", grouped(static_cast<std::int64_t>(manifest.blobs.size())),
             grouped(blob_bytes)});
  return table.text(style);
}

// A config.json fills pages; its size says enough.
std::string short_model(const std::string& model) {
  constexpr std::size_t kLongest = 90;
  if (model.starts_with('{') || model.size() > kLongest) {
    return fmt::format("a config.json of {} bytes",
                       grouped(static_cast<std::int64_t>(model.size())));
  }
  return visible(model);
}

void add_fields(Table& table, const std::string& title, const Fields& fields) {
  std::string first = title;
  for (const auto& [key, value] : fields) {
    table.row({std::exchange(first, ""), visible(key), visible(value)});
  }
}

std::string run_text(const Manifest& manifest, const TextStyle& style) {
  Table table({{"", Align::kLeft}, {"", Align::kLeft}, {"", Align::kWrap}});
  table.row({"run", "model", short_model(manifest.run.model)});
  table.row({"", "optimizer steps", grouped(manifest.run.optimizer_steps)});
  add_fields(table, "schedule", manifest.run.schedule);
  add_fields(table, "data", manifest.run.data);
  add_fields(table, "settings", manifest.run.settings);
  add_fields(table, "progress", manifest.run.progress);
  return table.text(style);
}

std::string tensors_text(const Manifest& manifest, const TextStyle& style) {
  Table table(
      {{"tensor", Align::kLeft}, {"elements"}, {"shape", Align::kLeft}, {"states", Align::kWrap}});
  for (const Tensor& tensor : manifest.tensors) {
    std::vector<std::string> states;
    for (const TensorState& state : tensor.states) {
      states.push_back(fmt::format("{} {}", name(state.kind), name(state.dtype)));
    }
    table.row({visible(tensor.name), grouped(element_count(tensor)),
               fmt::format("[{}]", fmt::join(tensor.shape, ", ")),
               fmt::format("{}", fmt::join(states, ", "))});
  }
  return table.text(style);
}

Json tensor_json(const Tensor& tensor) {
  Json states = Json::array();
  for (const TensorState& state : tensor.states) {
    states.push_back({{"kind", name(state.kind)},
                      {"dtype", name(state.dtype)},
                      {"pieces", state.pieces.size()},
                      {"bytes", element_count(tensor) * network::size_of(state.dtype)}});
  }
  Json json;
  json["name"] = tensor.name;
  json["shape"] = tensor.shape;
  json["elements"] = element_count(tensor);
  json["states"] = std::move(states);
  return json;
}

Json run_json(const Manifest& manifest) {
  Json json;
  json["model"] = manifest.run.model;
  json["optimizer_steps"] = manifest.run.optimizer_steps;
  json["schedule"] = manifest.run.schedule;
  json["data"] = manifest.run.data;
  json["settings"] = manifest.run.settings;
  json["progress"] = manifest.run.progress;
  return json;
}

}  // namespace

std::string checkpoint_text(const CheckpointState& shown, const TextStyle& style) {
  const Manifest& manifest = *shown.verification.manifest;
  return fmt::format("{}: step {}, written by {} rank{} at stage {}, {} bytes\n{}\n{}\n{}",
                     visible(shown.entry.folder), manifest.step, manifest.ranks,
                     manifest.ranks == 1 ? "" : "s", static_cast<int>(manifest.stage),
                     grouped(shown.verification.bytes), run_text(manifest, style),
                     shares_text(manifest, style), tensors_text(manifest, style));
}

Json checkpoint_json(const CheckpointState& shown) {
  const Manifest& manifest = *shown.verification.manifest;
  Json json;
  json["schema"] = "plimsoll.checkpoint_contents/1";
  json["folder"] = shown.entry.folder;
  json["step"] = manifest.step;
  json["ranks"] = manifest.ranks;
  json["stage"] = static_cast<int>(manifest.stage);
  json["bytes"] = shown.verification.bytes;
  json["run"] = run_json(manifest);
  json["files"] = manifest.file_bytes;
  json["tensors"] = Json::array();
  for (const Tensor& tensor : manifest.tensors) json["tensors"].push_back(tensor_json(tensor));
  json["blobs"] = Json::array();
  for (const checkpoint::Blob& blob : manifest.blobs) {
    json["blobs"].push_back(
        {{"name", blob.name}, {"rank", blob.place.rank}, {"bytes", blob.place.bytes}});
  }
  return json;
}

}  // namespace plimsoll::report
