#include "plimsoll/cli/command_line.hpp"

#include <algorithm>
#include <iterator>

namespace plimsoll::cli {
namespace {

bool is_plain(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') ||
         std::string_view("-_./:=,+@%").find(c) != std::string_view::npos;
}

// For a POSIX shell: within single quotes all but the quote stands for itself.
std::string shell_word(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

bool of_the_output(const std::string& option) {
  static constexpr std::string_view kOptions[] = {"--json", "--first-step", "--out", "--trace",
                                                  "--measured"};
  return std::find(std::begin(kOptions), std::end(kOptions), option) != std::end(kOptions);
}

}  // namespace

std::string call_line(const Given& given) {
  std::string line = "plimsoll";
  for (const std::string& word : given.call) line += " " + shell_word(word);
  return line;
}

std::string command_with(const Given& given, std::string_view command,
                         const std::vector<plan::Setting>& settings) {
  const bool like_an_option = given.positional.starts_with("-");
  std::string line = "plimsoll " + std::string(command);
  if (!like_an_option) line += " " + shell_word(given.positional);
  const auto add = [&](const std::string& option, const std::string& value) {
    line += " " + option;
    if (!value.empty()) line += " " + shell_word(value);
  };
  for (const auto& [option, value] : given.values) {
    const auto changes = [&](const plan::Setting& setting) { return setting.option == option; };
    if (of_the_output(option)) continue;
    if (std::none_of(settings.begin(), settings.end(), changes)) add(option, value);
  }
  for (const plan::Setting& setting : settings) add(setting.option, setting.value);
  if (like_an_option) line += " -- " + shell_word(given.positional);
  return line;
}

void write_commands(plan::Changes& changes, const Given& given) {
  for (plan::Change& change : changes.found) {
    change.command = command_with(given, "plan", change.settings);
  }
}

}  // namespace plimsoll::cli
