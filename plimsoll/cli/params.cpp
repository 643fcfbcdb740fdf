// plimsoll params MODEL: the parameter count term by term, and why a published one differs.
#include <algorithm>
#include <filesystem>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/cli/adaptation_options.hpp"
#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/values.hpp"
#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/formats/safetensors.hpp"
#include "plimsoll/plan/adaptation.hpp"
#include "plimsoll/report/parameters.hpp"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;
using Tensors = std::vector<formats::TensorEntry>;

bool holds_shards(const fs::path& folder) {
  std::error_code problem;
  for (fs::directory_iterator it(folder, problem); !problem && it != fs::directory_iterator();
       it.increment(problem)) {
    if (it->path().extension() == ".safetensors") return true;
  }
  return false;
}

// A weights file, or a folder of them that has no config.json: there the config says more.
bool is_weights(const std::string& argument) {
  const fs::path path(argument);
  std::error_code problem;
  if (fs::is_directory(path, problem)) {
    return !fs::exists(path / "config.json", problem) && holds_shards(path);
  }
  return path.extension() == ".safetensors" && fs::exists(path, problem);
}

Result<Tensors> read_weights(const std::string& argument) {
  std::error_code problem;
  return fs::is_directory(argument, problem) ? formats::read_safetensors_folder(argument)
                                             : formats::read_safetensors_header(argument);
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+';
  });
}

Result<std::int64_t> published_number(const std::string& text) {
  return parse_whole("--against", text, 1, std::numeric_limits<std::int64_t>::max());
}

Result<report::PublishedCount> weights_against(const formats::CountedModel& model,
                                               const std::string& file) {
  std::error_code problem;
  if (!fs::exists(file, problem)) {
    return fail("--against",
                fmt::format("{}, expected a parameter count in digits, or a .safetensors file or "
                            "folder",
                            in_quotes(file)));
  }
  const auto tensors = read_weights(file);
  if (!tensors) return tl::unexpected(tensors.error());
  return report::explain_weights(model, *tensors, file);
}

Result<report::Parameters> of_model(const std::string& argument, const std::string* against) {
  const auto model = formats::load_counted_model(argument);
  if (!model) return tl::unexpected(model.error());
  report::Parameters parameters = report::parameters_of(*model);
  if (against == nullptr) return parameters;
  if (!is_number(*against)) {
    const auto compared = weights_against(*model, *against);
    if (!compared) return tl::unexpected(compared.error());
    parameters.against = *compared;
    return parameters;
  }
  const auto published = published_number(*against);
  if (!published) return tl::unexpected(published.error());
  parameters.against = report::explain_number(*model, parameters.count, *published);
  return parameters;
}

Result<report::Parameters> of_weights(const std::string& argument, const std::string* against) {
  const auto tensors = read_weights(argument);
  if (!tensors) return tl::unexpected(tensors.error());
  report::Parameters parameters = report::parameters_of(argument, *tensors);
  if (against == nullptr) return parameters;
  const auto published = published_number(*against);
  if (!published) return tl::unexpected(published.error());
  parameters.against = report::explain_number(parameters.count, *published);
  return parameters;
}

// Trainable and frozen parameters of the network that a job with these options runs.
Result<void> add_learning(const Given& given, report::Parameters& parameters) {
  const std::string* lora = given.find("--lora");
  const std::string* freeze = given.find("--freeze");
  if (lora == nullptr && freeze == nullptr) return {};
  const auto spec = formats::load_model(given.positional);
  if (!spec) return tl::unexpected(spec.error());
  plan::Job job;
  job.sequence = 1;
  if (lora != nullptr) {
    auto choice = parse_lora(*lora, *spec);
    if (!choice) return tl::unexpected(choice.error());
    job.lora = std::move(choice->lora);
    for (std::string& line : choice->assumptions) parameters.assumptions.push_back(line);
  }
  if (freeze != nullptr) {
    auto rules = parse_freeze(*freeze, *spec);
    if (!rules) return tl::unexpected(rules.error());
    job.freeze = *std::move(rules);
  }
  if (auto ok = plan::validate_adaptation(job, *spec); !ok) return ok;
  parameters.learning = network::build_network(*spec, job.build_options()).parameter_count();
  return {};
}

Result<Output> run_params(const Given& given, const TextStyle& style) {
  const std::string* against = given.find("--against");
  auto parameters = is_weights(given.positional) ? of_weights(given.positional, against)
                                                 : of_model(given.positional, against);
  if (!parameters) return tl::unexpected(parameters.error());
  if (auto ok = add_learning(given, *parameters); !ok) return tl::unexpected(ok.error());
  if (given.has("--json")) return Output{report::json_text(report::parameters_json(*parameters))};
  return Output{report::parameters_text(*parameters, style)};
}

}  // namespace

Command params_command() {
  return {
      {"params",
       "parameter count term by term, and why a published count differs",
       "MODEL",
       {{"--against", "N or FILE", "a published count, or weights (.safetensors, or a folder)"},
        {"--lora", "SPEC", "adapters, the rest frozen: rank=8,targets=q,v (none)"},
        {"--freeze", "LIST", "embeddings, head, layers:0-5, *.mlp.*: what does not learn (none)"},
        {"--json", "", "JSON of schema plimsoll.params/1"}}},
      run_params};
}

}  // namespace plimsoll::cli
