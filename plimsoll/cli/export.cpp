// plimsoll export DIR --out DIR2: a checkpoint as a model that transformers loads.
#include "plimsoll/checkpoint/export.hpp"

#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/report/checkpoints.hpp"
#include "plimsoll/report/exported.hpp"

namespace plimsoll::cli {
namespace {

// The newest whole one of a run, or the one that was named.
Result<checkpoint::Newest> chosen(const std::string& folder) {
  const auto found = report::look_at_checkpoints(folder, checkpoint::Depth::kStructure);
  if (!found) return tl::unexpected(found.error());
  if (found->checkpoints.empty()) return fail(folder, "has no checkpoint");
  if (found->single) {
    return checkpoint::Newest{found->checkpoints.front().entry, {}};
  }
  auto newest = checkpoint::newest_valid(folder, checkpoint::Depth::kContents);
  if (!newest || newest->found) return newest;
  return fail(folder, "has no whole checkpoint: " + newest->skipped.front().reason,
              "plimsoll checkpoint verify says what is wrong");
}

Result<Output> run_export(const Given& given, const TextStyle& style) {
  const std::string* out = given.find("--out");
  if (out == nullptr) return fail("--out", "is missing, expected a folder for the model");
  const auto newest = chosen(given.positional);
  if (!newest) return tl::unexpected(newest.error());
  const auto exported =
      checkpoint::export_checkpoint(newest->found->folder, *out, given.has("--force"));
  if (!exported) return tl::unexpected(exported.error());
  const report::Export done{*exported, *out, newest->skipped};
  return Output{given.has("--json") ? report::json_text(report::export_json(done))
                                    : report::export_text(done, style)};
}

}  // namespace

Command export_command() {
  return {{"export",
           "a checkpoint as model.safetensors and config.json, for transformers",
           "DIR",
           {{"--out", "DIR2", "folder for the model; made when missing"},
            {"--force", "", "replaces a model that is there"},
            {"--json", "", "JSON of schema plimsoll.export/1"}}},
          run_export};
}

}  // namespace plimsoll::cli
