// plimsoll checkpoint list|show|verify DIR: what a run has saved, and whether it is whole.
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/values.hpp"
#include "plimsoll/comm/last_words.hpp"
#include "plimsoll/report/checkpoints.hpp"

namespace plimsoll::cli {
namespace {

using checkpoint::Depth;
using report::Checkpoints;

Output shown(const Checkpoints& found, bool json, const TextStyle& style) {
  return {json ? report::json_text(report::checkpoints_json(found))
               : report::checkpoints_text(found, style)};
}

Result<Output> list(const std::string& folder, bool json, const TextStyle& style) {
  auto found = report::look_at_checkpoints(folder, Depth::kStructure);
  if (!found) return tl::unexpected(found.error());
  if (const auto cause = comm::last_words(folder)) found->last_words = comm::format_cause(*cause);
  return shown(*found, json, style);
}

Result<Output> verify(const std::string& folder, bool json, const TextStyle& style) {
  const auto found = report::look_at_checkpoints(folder, Depth::kContents);
  if (!found) return tl::unexpected(found.error());
  if (found->checkpoints.empty()) return fail(folder, "has no checkpoint");
  Output output = shown(*found, json, style);
  if (!found->all_whole()) output.code = ExitCode::kCheckFailed;
  return output;
}

Result<Output> show(const std::string& folder, bool json, const TextStyle& style) {
  const auto found = report::look_at_checkpoints(folder, Depth::kStructure);
  if (!found) return tl::unexpected(found.error());
  const report::CheckpointState* newest = found->newest_whole();
  if (newest == nullptr) {
    const bool none = found->checkpoints.empty();
    return fail(folder, none ? "has no checkpoint" : "has no complete checkpoint",
                none ? "" : "plimsoll checkpoint verify says what is wrong");
  }
  return Output{json ? report::json_text(report::checkpoint_json(*newest))
                     : report::checkpoint_text(*newest, style)};
}

struct Action {
  std::string_view name;
  Result<Output> (*run)(const std::string&, bool, const TextStyle&);
};
constexpr std::array<Action, 3> kActions = {{{"list", list}, {"show", show}, {"verify", verify}}};

Result<Output> run_checkpoint(const Given& given, const TextStyle& style) {
  for (const Action& action : kActions) {
    if (action.name == given.positional) {
      return action.run(given.further[0], given.has("--json"), style);
    }
  }
  return fail("checkpoint",
              fmt::format("{}, expected list, show or verify", in_quotes(given.positional)));
}

}  // namespace

Command checkpoint_command() {
  return {{"checkpoint",
           "what a run has saved: list, show the newest, verify every byte",
           "ACTION",
           {{"--json", "",
             "JSON of schema plimsoll.checkpoints/1; of show: plimsoll.checkpoint_contents/1"}},
           {"DIR"}},
          run_checkpoint};
}

}  // namespace plimsoll::cli
