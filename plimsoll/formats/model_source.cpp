#include "plimsoll/formats/model_source.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/builtin_models.hpp"
#include "plimsoll/formats/class_config.hpp"
#include "plimsoll/formats/config.hpp"
#include "plimsoll/formats/inline_model.hpp"
#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/text_file.hpp"

namespace plimsoll::formats {
namespace {

namespace fs = std::filesystem;
using network::NetworkSpec;

// Configurations have a few kilobytes; a wrong file should not be parsed for minutes.
constexpr std::size_t kLargestConfig = std::size_t{16} << 20U;

// An inline model, or a config that is still to be read as what is wanted.
using Source = std::variant<NetworkSpec, ClassConfig>;

struct Found {
  Source source;
  std::string title;
  std::string text = {};  // of the config.json, or the inline model
};

Result<Source> read_source(std::string_view text, std::string_view where) {
  const auto document = parse_json(text, where);
  if (!document) return tl::unexpected<Error>(document.error());
  auto config = class_config(*document, where);
  if (!config) return tl::unexpected<Error>(config.error());
  return Source(*std::move(config));
}

Result<Found> load_file(const fs::path& path, const std::string& argument) {
  if (path.extension() == ".safetensors") {
    return fail(path.string(), "holds weights, expected a config.json",
                "weights alone do not say how a network computes; `params` reads them");
  }
  auto text = read_text_file(path, kLargestConfig);
  if (!text) return tl::unexpected<Error>(text.error());
  auto source = read_source(*text, path.string());
  if (!source) return tl::unexpected<Error>(source.error());
  return Found{*std::move(source), argument, *std::move(text)};
}

// The first few names of a folder, for people who pointed one level too high.
std::string contents(const fs::path& folder) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator it(folder, problem); !problem && it != fs::directory_iterator();
       it.increment(problem)) {
    names.push_back(it->path().filename().string());
  }
  if (names.empty()) return "it is empty or cannot be read";
  std::sort(names.begin(), names.end());
  const std::size_t shown = std::min(names.size(), kShown);
  std::string text = fmt::format(
      "it has {}",
      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

Result<Found> load_folder(const fs::path& folder, const std::string& argument) {
  const fs::path config = folder / "config.json";
  std::error_code problem;
  if (fs::exists(config, problem)) return load_file(config, argument);
  const bool hides = find_builtin_model(argument) != nullptr || is_inline_model(argument);
  return fail(argument, "folder without config.json: " + contents(folder),
              hides ? "a path wins over a name; run elsewhere to mean the model " + argument : "");
}

Found load_builtin(const BuiltinModel& model) {
  auto source = read_source(model.config, model.name);
  check(source.has_value(), "a built-in model does not load");
  return {*std::move(source), std::string(model.name), std::string(model.config)};
}

// "meta-llama/Llama-3-8B" -> "Llama-3-8B": hubs put an owner before the name.
std::string_view last_part(std::string_view argument) {
  while (argument.ends_with('/')) argument.remove_suffix(1);
  return argument.substr(argument.rfind('/') + 1);
}

tl::unexpected<Error> unknown(const std::string& argument) {
  const bool path = argument.find('/') != std::string::npos || argument.ends_with(".json");
  const std::string near = argument.find(':') != std::string::npos
                               ? nearest_inline_kind(argument)
                               : nearest_builtin_model(last_part(argument));
  const std::string what = argument.empty() ? "is empty"
                           : path           ? "no such file or folder"
                                            : "is no file, folder, built-in or inline model";
  std::string hint = near.empty() ? "" : fmt::format("nearest name: {}; ", near);
  return fail(
      argument.empty() ? "MODEL" : argument,
      what + ", expected a config.json, a name of `plimsoll models`, minigpt:... or cnn:...",
      hint + "plimsoll reads local files and fetches nothing");
}

Result<Found> find_source(const std::string& argument) {
  std::error_code problem;
  const fs::file_status status = fs::status(argument, problem);
  if (!argument.empty() && fs::exists(status)) {
    const bool folder = status.type() == fs::file_type::directory;
    return folder ? load_folder(argument, argument) : load_file(argument, argument);
  }
  if (problem == std::errc::permission_denied) {
    return fail(argument, "cannot be read: " + problem.message());
  }
  if (is_inline_model(argument)) {
    auto spec = read_inline_model(argument);
    if (!spec) return tl::unexpected<Error>(spec.error());
    std::string title = spec->title;
    return Found{Source(*std::move(spec)), std::move(title), argument};
  }
  if (const BuiltinModel* model = find_builtin_model(argument)) {
    return load_builtin(*model);
  }
  return unknown(argument);
}

Result<NetworkSpec> spec_of(const Found& found) {
  if (const auto* spec = std::get_if<NetworkSpec>(&found.source)) return *spec;
  auto spec = read_config(std::get<ClassConfig>(found.source));
  if (spec) spec->title = found.title;
  return spec;
}

std::int64_t elements(const NetworkSpec& spec) {
  std::int64_t sum = 0;
  for (const network::ParameterTerm& term : parameter_terms(spec)) {
    sum = checked_add(sum, term.count);
  }
  return sum;
}

}  // namespace

Result<NetworkSpec> load_model(const std::string& argument) {
  const auto found = find_source(argument);
  if (!found) return tl::unexpected<Error>(found.error());
  return spec_of(*found);
}

Result<std::string> describe_model(const std::string& argument) {
  auto found = find_source(argument);
  if (!found) return tl::unexpected<Error>(found.error());
  return std::move(found->text);
}

Result<NetworkSpec> load_described_model(const std::string& text, const std::string& title) {
  if (is_inline_model(text)) return read_inline_model(text);
  auto source = read_source(text, title);
  if (!source) return tl::unexpected<Error>(source.error());
  return spec_of({*std::move(source), title});
}

Result<CountedModel> load_counted_model(const std::string& argument) {
  const auto found = find_source(argument);
  if (!found) return tl::unexpected<Error>(found.error());
  CountedModel model;
  model.title = found->title;
  if (auto spec = spec_of(*found)) model.spec = *std::move(spec);
  if (const auto* config = std::get_if<ClassConfig>(&found->source)) {
    auto inventory = read_inventory(*config);
    if (!inventory) return tl::unexpected<Error>(inventory.error());
    model.inventory = *std::move(inventory);
    model.config = *config;
    check(!model.spec || elements(*model.spec) == model.inventory->inventory.elements(),
          "the formulas of a model do not sum to its inventory");
  }
  return model;
}

}  // namespace plimsoll::formats
