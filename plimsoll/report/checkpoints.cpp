#include "plimsoll/report/checkpoints.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"

namespace plimsoll::report {
namespace {

namespace fs = std::filesystem;
using checkpoint::Depth;
using checkpoint::Manifest;

std::string name_of(const std::string& folder) {
  fs::path path(folder);
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

bool is_checkpoint(const std::string& folder) {
  std::error_code problem;
  return name_of(folder).starts_with("step-") ||
         fs::exists(fs::path(folder) / std::string(checkpoint::kMarkerFile), problem) ||
         fs::exists(fs::path(folder) / std::string(checkpoint::kManifestFile), problem);
}

CheckpointState single(const std::string& folder, Depth depth) {
  CheckpointState state;
  state.entry.folder = folder;
  state.verification = checkpoint::verify(folder, depth);
  if (state.verification.manifest) state.entry.step = state.verification.manifest->step;
  return state;
}

// Elements of the weights.
std::int64_t parameters(const Manifest& manifest) {
  std::int64_t count = 0;
  for (const checkpoint::Tensor& tensor : manifest.tensors) {
    if (tensor.find(checkpoint::StateKind::kBuffer) == nullptr) count += element_count(tensor);
  }
  return count;
}

std::string state_text(const CheckpointState& state, Depth depth) {
  if (state.entry.temporary) return "being written, or an interrupted save";
  if (state.whole()) return depth == Depth::kContents ? "whole" : "complete";
  const auto& findings = state.verification.findings;
  const std::string first = visible(finding_text(findings.front()));
  if (findings.size() == 1) return first;
  return fmt::format("{} (and {} more)", first, findings.size() - 1);
}

std::string headline(const Checkpoints& found) {
  const auto real = std::count_if(found.checkpoints.begin(), found.checkpoints.end(),
                                  [](const CheckpointState& s) { return !s.entry.temporary; });
  std::string text =
      fmt::format("{}: {} checkpoint{}", visible(found.folder), real, real == 1 ? "" : "s");
  if (const CheckpointState* newest = found.newest_whole()) {
    return text + fmt::format(", the newest {} one is of step {}\n",
                              found.depth == Depth::kContents ? "whole" : "complete",
                              newest->entry.step);
  }
  return text + (real == 0 ? "\n" : ", none to go on from\n");
}

std::string ended_text(const Checkpoints& found) {
  if (found.ended) return fmt::format("The run came to its end after step {}.\n", *found.ended);
  std::string text = "No mark of the run's end: it is going on, or was interrupted.\n";
  if (found.last_words) text += fmt::format("Last words: {}\n", visible(*found.last_words));
  return text;
}

Json findings_json(const CheckpointState& state) {
  Json findings = Json::array();
  for (const checkpoint::Finding& finding : state.verification.findings) {
    findings.push_back({{"file", finding.file}, {"piece", finding.piece}, {"what", finding.what}});
  }
  return findings;
}

Json state_json(const CheckpointState& state) {
  const auto& manifest = state.verification.manifest;
  const auto known = [&](std::int64_t value) { return manifest ? Json(value) : Json(); };
  Json json;
  json["name"] = name_of(state.entry.folder);
  json["step"] = state.entry.step;
  json["temporary"] = state.entry.temporary;
  json["whole"] = state.whole();
  json["ranks"] = known(manifest ? manifest->ranks : 0);
  json["stage"] = known(manifest ? static_cast<int>(manifest->stage) : 0);
  json["parameters"] = known(manifest ? parameters(*manifest) : 0);
  json["tensors"] = known(manifest ? static_cast<std::int64_t>(manifest->tensors.size()) : 0);
  json["bytes"] = known(state.verification.bytes);
  json["findings"] = findings_json(state);
  return json;
}

}  // namespace

const CheckpointState* Checkpoints::newest_whole() const {
  const auto found = std::find_if(checkpoints.rbegin(), checkpoints.rend(),
                                  [](const CheckpointState& state) { return state.whole(); });
  return found == checkpoints.rend() ? nullptr : &*found;
}

bool Checkpoints::all_whole() const {
  return std::all_of(checkpoints.begin(), checkpoints.end(), [](const CheckpointState& state) {
    return state.entry.temporary || state.whole();
  });
}

Result<Checkpoints> look_at_checkpoints(const std::string& folder, Depth depth) {
  std::error_code problem;
  if (!fs::exists(folder, problem)) return fail(folder, "no such folder");
  if (!fs::is_directory(folder, problem)) {
    return fail(folder, "is no folder, expected one of a run or of a checkpoint");
  }
  Checkpoints found{folder, is_checkpoint(folder), depth, {}, {}, {}};
  if (found.single) {
    found.checkpoints.push_back(single(folder, depth));
    return found;
  }
  const auto entries = checkpoint::list_checkpoints(folder);
  if (!entries) return tl::unexpected<Error>(entries.error());
  for (const checkpoint::Entry& entry : *entries) {
    CheckpointState state{entry, {}};
    if (!entry.temporary) state.verification = checkpoint::verify(entry.folder, depth);
    found.checkpoints.push_back(std::move(state));
  }
  found.ended = checkpoint::ended_at(folder);
  return found;
}

std::string checkpoints_text(const Checkpoints& found, const TextStyle& style) {
  Table table({{"name", Align::kLeft},
               {"ranks"},
               {"stage"},
               {"tensors"},
               {"parameters"},
               {"bytes"},
               {"state", Align::kWrap}});
  for (const CheckpointState& state : found.checkpoints) {
    std::vector<std::string> cells = {visible(name_of(state.entry.folder)), "", "", "", "", ""};
    if (const auto& manifest = state.verification.manifest) {
      cells = {cells[0],
               grouped(manifest->ranks),
               std::to_string(static_cast<int>(manifest->stage)),
               grouped(static_cast<std::int64_t>(manifest->tensors.size())),
               grouped(parameters(*manifest)),
               grouped(state.verification.bytes)};
    }
    cells.push_back(state_text(state, found.depth));
    table.row(std::move(cells));
  }
  std::string text = headline(found);
  if (!found.checkpoints.empty()) text += table.text(style);
  return found.single ? text : text + ended_text(found);
}

Json checkpoints_json(const Checkpoints& found) {
  Json json;
  json["schema"] = "plimsoll.checkpoints/1";
  json["folder"] = found.folder;
  json["depth"] = found.depth == Depth::kContents ? "contents" : "structure";
  json["ended"] = found.ended ? Json(*found.ended) : Json();
  json["last_words"] = found.last_words ? Json(*found.last_words) : Json();
  const CheckpointState* newest = found.newest_whole();
  json["newest"] = newest == nullptr ? Json() : Json(newest->entry.step);
  json["checkpoints"] = Json::array();
  for (const CheckpointState& state : found.checkpoints) {
    json["checkpoints"].push_back(state_json(state));
  }
  return json;
}

}  // namespace plimsoll::report
