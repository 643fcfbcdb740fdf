#include "plimsoll/cli/help.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "plimsoll/base/table.hpp"

namespace plimsoll::cli {
namespace {

constexpr const char* kModel =
    "MODEL is a config.json or the folder of one, a name of `plimsoll models`, or written out:\n"
    "  minigpt:d=128,L=4,V=1000,s=64,heads=4   cnn:channels=16-24-32,image=32,classes=10\n";

std::vector<std::string> groups_of(const Syntax& syntax) {
  std::vector<std::string> groups;
  for (const Option& option : syntax.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  return groups;
}

// "explain MODEL [TERM]".
std::string call_of(const Syntax& syntax) {
  std::string call = syntax.name;
  if (!syntax.positional.empty()) call += " " + syntax.positional;
  for (const std::string& word : syntax.further) call += " " + word;
  return call;
}

std::string group_lines(const Syntax& syntax, const std::string& group, const TextStyle& style) {
  constexpr std::size_t kCallWidth = 24;  // the same in every group, so that they line up
  std::string text = "\n" + bold(group, style) + "\n";
  for (const Option& option : syntax.options) {
    if (option.group != group) continue;
    const std::string call = fmt::format("  {} {}", option.name, option.value);
    text += fmt::format("{:<{}}  ", call, kCallWidth);
    text += wrapped(option.help, kCallWidth + 2, kCallWidth + 2, style.width) + "\n";
  }
  return text;
}

}  // namespace

std::string overview(const TextStyle& style) {
  Table table({{"", Align::kLeft}, {"", Align::kWrap}});
  for (const Command& command : commands()) {
    const Syntax& syntax = command.syntax;
    table.row({call_of(syntax), syntax.summary});
  }
  table.row({"help COMMAND", "what a command accepts"});
  table.row({"--version", "the version"});
  return "plimsoll plans the memory of neural-network training and checks it to the byte.\n\n" +
         bold("Usage", style) + "  plimsoll COMMAND [ARGUMENTS]\n\n" + bold("Commands", style) +
         "\n" + table.text(style) + "\n" + kModel +
         "\nExit codes: 0 ok, 1 it does not fit or a check failed, 2 usage or bad input, 3 the "
         "machine\n"
         "lacks something, 70 a bug of ours.\n";
}

std::string command_help(const Syntax& syntax, const TextStyle& style) {
  const std::string call = "plimsoll " + call_of(syntax);
  std::string text = fmt::format("plimsoll {}: {}\n\n{}  {} [OPTIONS]\n", syntax.name,
                                 syntax.summary, bold("Usage", style), call);
  if (syntax.positional == "MODEL") text += fmt::format("\n{}", kModel);
  for (const std::string& group : groups_of(syntax)) text += group_lines(syntax, group, style);
  return text;
}

}  // namespace plimsoll::cli
