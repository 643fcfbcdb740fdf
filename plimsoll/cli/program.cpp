#include "plimsoll/cli/program.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "plimsoll/cli/arguments.hpp"
#include "plimsoll/cli/help.hpp"
#include "plimsoll/cli/output_file.hpp"
#include "plimsoll/cli/values.hpp"
#include "plimsoll/cli/version.hpp"

namespace plimsoll::cli {
namespace {

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.syntax.name);
  return names;
}

tl::unexpected<Error> unknown_command(const std::string& word) {
  std::vector<std::string> names = command_names();
  const std::string expected = fmt::format("expected one of {}, help", fmt::join(names, ", "));
  names.insert(names.end(), {"help", "--help", "--version"});
  const std::string near = nearest_name(word.substr(0, 64), names);
  return fail("plimsoll", fmt::format("\"{}\" is no command, {}", word.substr(0, 64), expected),
              near.empty() ? "" : "nearest name: " + near);
}

const Command* find_command(const std::string& name) {
  for (const Command& command : commands()) {
    if (command.syntax.name == name) return &command;
  }
  return nullptr;
}

bool is_help(const std::string& word) { return word == "--help" || word == "-h"; }

// Wherever it stands, before "--": who asks for help while writing a call gets it.
bool asks_for_help(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::any_of(words.begin(), end, is_help);
}

// Nothing may stand behind the first `expected` words but another wish for help.
Result<void> expect_no_more(const std::string& command, const std::vector<std::string>& words,
                            std::size_t expected) {
  for (std::size_t i = expected; i < words.size(); ++i) {
    if (is_help(words[i])) continue;
    return fail(command, fmt::format("unexpected argument {}, expected {}", in_quotes(words[i]),
                                     expected == 0 ? "none" : "one command"));
  }
  return {};
}

Result<Output> help(const std::vector<std::string>& words, const TextStyle& style) {
  if (words.empty() || is_help(words[0])) {
    if (auto ok = expect_no_more("help", words, 0); !ok) return tl::unexpected(ok.error());
    return Output{overview(style)};
  }
  const Command* command = find_command(words[0]);
  if (command == nullptr) return unknown_command(words[0]);
  if (auto ok = expect_no_more("help", words, 1); !ok) return tl::unexpected(ok.error());
  return Output{command_help(command->syntax, style)};
}

Error bug(std::string_view what) {
  return {"plimsoll", fmt::format("a bug of ours: {}", what),
          "please report it together with the command", ExitCode::kInternal};
}

int print_error(const Error& error) {
  write_all(STDERR_FILENO, format_error(error) + "\n");
  return static_cast<int>(error.code);
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      params_command(), plan_command(),    fit_command(),        diff_command(),
      math_command(),   infer_command(),   explain_command(),    measure_command(),
      report_command(), train_command(),   checkpoint_command(), export_command(),
      models_command(), devices_command(), doctor_command()};
  return kCommands;
}

Result<Output> dispatch(const std::vector<std::string>& arguments, const TextStyle& style) {
  if (arguments.empty()) {
    return fail("plimsoll",
                fmt::format("no command, expected one of {}", fmt::join(command_names(), ", ")),
                "plimsoll help");
  }
  const std::string& word = arguments[0];
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (word == "help" || is_help(word)) return help(rest, style);
  if (word == "--version") {
    if (auto ok = expect_no_more(word, rest, 0); !ok) return tl::unexpected(ok.error());
    return Output{fmt::format("plimsoll {}\n", version())};
  }
  const Command* command = find_command(word);
  if (command == nullptr) return unknown_command(word);
  if (asks_for_help(rest)) return Output{command_help(command->syntax, style)};
  auto given = parse_arguments(command->syntax, rest);
  if (!given) return tl::unexpected(given.error());
  given->call = arguments;
  return command->run(*given, style);
}

Result<Output> guarded(const std::function<Result<Output>()>& work) {
  try {
    return work();
  } catch (const OverflowError& error) {
    return fail("plimsoll", error.what(), "the sizes asked for are beyond any machine");
  } catch (const std::bad_alloc&) {
    return fail("plimsoll", "out of memory", "the machine has too little free memory for this",
                ExitCode::kEnvironment);
  } catch (const std::exception& error) {
    return tl::unexpected<Error>(bug(error.what()));
  }
}

int run_program(const std::vector<std::string>& arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  const TextStyle style = style_of(STDOUT_FILENO);
  const auto output = guarded([&] { return dispatch(arguments, style); });
  if (!output) return print_error(output.error());
  if (!write_all(STDOUT_FILENO, output->text) && errno != EPIPE) {
    return print_error({"stdout", fmt::format("cannot be written: {}", std::strerror(errno)), "",
                        ExitCode::kEnvironment});
  }
  return static_cast<int>(output->code);
}

}  // namespace plimsoll::cli
