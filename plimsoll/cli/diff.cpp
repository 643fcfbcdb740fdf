// plimsoll diff A.json B.json: what differs between two plans.
#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/formats/plan_file.hpp"
#include "plimsoll/report/difference.hpp"

namespace plimsoll::cli {
namespace {

Result<Output> run_diff(const Given& given, const TextStyle& style) {
  const auto before = formats::read_plan_file(given.positional);
  if (!before) return tl::unexpected(before.error());
  const auto after = formats::read_plan_file(given.further[0]);
  if (!after) return tl::unexpected(after.error());
  const report::Difference difference = report::difference_of(*before, *after);
  if (given.has("--json")) return Output{report::json_text(report::difference_json(difference))};
  return Output{report::difference_text(difference, style)};
}

}  // namespace

Command diff_command() {
  return {{"diff",
           "what differs between two plans, largest changes first",
           "A.json",
           {{"--json", "", "JSON of schema plimsoll.diff/1"}},
           {"B.json"}},
          run_diff};
}

}  // namespace plimsoll::cli
