#include "plimsoll/formats/model_source.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/formats/builtin_models.hpp"
#include "plimsoll/formats/config.hpp"
#include "plimsoll/formats/inline_model.hpp"
#include "plimsoll/formats/text_file.hpp"

namespace plimsoll::formats {
namespace {

namespace fs = std::filesystem;
using network::NetworkSpec;

// Configurations have a few kilobytes; a wrong file should not be parsed for minutes.
constexpr std::size_t kLargestConfig = std::size_t{16} << 20U;

Result<NetworkSpec> load_file(const fs::path& path) {
  if (path.extension() == ".safetensors") {
    return fail(path.string(), "holds weights, expected a config.json",
                "weights alone do not say how a network computes; `params` reads them");
  }
  const auto text = read_text_file(path, kLargestConfig);
  if (!text) return tl::unexpected<Error>(text.error());
  return read_config(*text, path.string());
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

Result<NetworkSpec> load_folder(const fs::path& folder, const std::string& argument) {
  const fs::path config = folder / "config.json";
  std::error_code problem;
  if (fs::exists(config, problem)) return load_file(config);
  const bool hides = find_builtin_model(argument) != nullptr || is_inline_model(argument);
  return fail(argument, "folder without config.json: " + contents(folder),
              hides ? "a path wins over a name; run elsewhere to mean the model " + argument : "");
}

Result<NetworkSpec> load_path(const std::string& argument, fs::file_type type) {
  auto spec =
      type == fs::file_type::directory ? load_folder(argument, argument) : load_file(argument);
  if (spec) spec->title = argument;
  return spec;
}

Result<NetworkSpec> load_builtin(const BuiltinModel& model) {
  auto spec = read_config(model.config, model.name);
  check(spec.has_value(), "a built-in model does not load");
  return spec;
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

}  // namespace

Result<NetworkSpec> load_model(const std::string& argument) {
  std::error_code problem;
  const fs::file_status status = fs::status(argument, problem);
  if (!argument.empty() && fs::exists(status)) return load_path(argument, status.type());
  if (problem == std::errc::permission_denied) {
    return fail(argument, "cannot be read: " + problem.message());
  }
  if (is_inline_model(argument)) return read_inline_model(argument);
  if (const BuiltinModel* model = find_builtin_model(argument)) return load_builtin(*model);
  return unknown(argument);
}

}  // namespace plimsoll::formats
