// plimsoll models: what is built in, with sources.
#include "plimsoll/report/models.hpp"

#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"

namespace plimsoll::cli {
namespace {

Result<Output> run_models(const Given& given, const TextStyle& style) {
  const auto models = report::known_models();
  if (given.has("--json")) return Output{report::json_text(report::models_json(models))};
  return Output{report::models_text(models, style)};
}

}  // namespace

Command models_command() {
  return {{"models",
           "the models that are built in, with their sources",
           "",
           {{"--json", "", "JSON of schema plimsoll.models/1"}}},
          run_models};
}

}  // namespace plimsoll::cli
