#include "plimsoll/cli/arguments.hpp"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace plimsoll::cli {
namespace {

bool may_be_left_out(std::string_view word) { return word.starts_with('['); }

// "[NAME]" -> "NAME".
std::string bare(std::string_view word) {
  if (may_be_left_out(word)) word = word.substr(1, word.size() - 2);
  return std::string(word);
}

// Everything is read as text: CLI11's own conversions accept "0x10" and "1e3" for whole numbers.
struct Parser {
  CLI::App app;
  std::string positional;
  std::map<std::string, std::string> texts;
  std::map<std::string, bool> flags;

  explicit Parser(const Syntax& syntax) : app(syntax.summary, "plimsoll " + syntax.name) {
    app.set_help_flag();
    app.allow_extras();
    if (!syntax.positional.empty()) app.add_option(bare(syntax.positional), positional);
    for (const Option& option : syntax.options) {
      if (option.value.empty()) {
        app.add_flag(option.name, flags[option.name]);
      } else {
        app.add_option(option.name, texts[option.name]);
      }
    }
  }
};

tl::unexpected<Error> unknown_option(const Syntax& syntax, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names = {"--help"};
  for (const Option& option : syntax.options) names.push_back(option.name);
  const std::string near = nearest_name(name.substr(0, 64), names);
  if (near == name) return fail(name, "stands behind `--`, where options are not read");
  return fail(name, fmt::format("is no option of plimsoll {}", syntax.name),
              near.empty() ? fmt::format("plimsoll {} --help lists them", syntax.name)
                           : "nearest name: " + near);
}

bool is_flag(const Syntax& syntax, std::string_view name) {
  return std::any_of(syntax.options.begin(), syntax.options.end(), [&](const Option& option) {
    return option.name == name && option.value.empty();
  });
}

// Longer words are accidents, and no path has more bytes; messages repeat them.
constexpr std::size_t kLongestWord = 4096;

// CLI11 would take the next word as the value of "--batch=", and "--json=3" for "--json".
Result<void> check_words(const Syntax& syntax, const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    if (word.size() > kLongestWord) {
      return fail(syntax.name, fmt::format("an argument of {} bytes, expected at most {}",
                                           word.size(), kLongestWord));
    }
  }
  for (const std::string& word : arguments) {
    if (word == "--") return {};
    const std::size_t equals = word.find('=');
    if (!word.starts_with("--") || equals == std::string::npos) continue;
    const std::string name = word.substr(0, equals);
    if (is_flag(syntax, name)) return fail(name, "takes no value");
    if (equals + 1 == word.size()) return fail(name, "has an empty value");
  }
  return {};
}

// "-5" is a number where words may follow, and refused as one.
bool is_option(const Syntax& syntax, const std::string& word) {
  if (word.size() < 2 || word[0] != '-' || word == "--") return false;
  const bool number = word[1] >= '0' && word[1] <= '9';
  return !number || syntax.further.empty();
}

// The words after the positional one.
Result<std::vector<std::string>> further_words(const Syntax& syntax,
                                               const std::vector<std::string>& extras) {
  std::vector<std::string> words;
  const bool endless = !syntax.further.empty() && syntax.further.back().ends_with("...]");
  for (const std::string& word : extras) {
    if (is_option(syntax, word)) return unknown_option(syntax, word);
  }
  for (const std::string& word : extras) {
    if (word == "--") continue;
    if (!endless && words.size() == syntax.further.size()) {
      const std::string first = syntax.positional.empty() ? "none" : "one " + syntax.positional;
      const std::string expected =
          syntax.further.empty()
              ? first
              : fmt::format("{} {}", bare(syntax.positional), fmt::join(syntax.further, " "));
      return fail(syntax.name,
                  fmt::format("unexpected argument \"{}\", expected {}", word, expected));
    }
    words.push_back(word);
  }
  return words;
}

Result<void> check_missing(const Syntax& syntax, const Given& given, bool has_first) {
  std::vector<std::string> missing;
  if (!syntax.positional.empty() && !has_first) missing.push_back(syntax.positional);
  for (std::size_t i = given.further.size(); i < syntax.further.size(); ++i) {
    missing.push_back(syntax.further[i]);
  }
  for (const std::string& word : missing) {
    if (may_be_left_out(word)) continue;
    return fail(syntax.name, fmt::format("{} is missing", word),
                fmt::format("plimsoll {} --help", syntax.name));
  }
  return {};
}

// "--batch: 1 required TEXT missing" or "--batch: At Most 1 required but received 2".
tl::unexpected<Error> mismatch(std::string_view message) {
  const bool missing = message.ends_with("missing");
  return fail(std::string(message.substr(0, message.find(':'))),
              missing ? "has no value" : "is given more than once");
}

Result<void> run_parser(Parser& parser, const Syntax& syntax,
                        const std::vector<std::string>& arguments) {
  try {
    // CLI11 takes the words from the back.
    parser.app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ArgumentMismatch& error) {
    return mismatch(error.what());
  } catch (const CLI::ParseError& error) {
    return fail(syntax.name, error.what(), fmt::format("plimsoll {} --help", syntax.name));
  }
  return {};
}

}  // namespace

const std::string* Given::find(const std::string& option) const {
  const auto found = values.find(option);
  return found == values.end() ? nullptr : &found->second;
}

Result<Given> parse_arguments(const Syntax& syntax, const std::vector<std::string>& arguments) {
  if (auto ok = check_words(syntax, arguments); !ok) return tl::unexpected(ok.error());
  Parser parser(syntax);
  if (auto ok = run_parser(parser, syntax, arguments); !ok) return tl::unexpected(ok.error());
  Given given;
  given.positional = parser.positional;
  auto words = further_words(syntax, parser.app.remaining());
  if (!words) return tl::unexpected(words.error());
  given.further = *std::move(words);
  const bool has_first =
      !syntax.positional.empty() && parser.app.count(bare(syntax.positional)) > 0;
  if (auto ok = check_missing(syntax, given, has_first); !ok) return tl::unexpected(ok.error());
  for (const auto& [name, text] : parser.texts) {
    if (parser.app.count(name) > 0) given.values[name] = text;
  }
  for (const auto& [name, set] : parser.flags) {
    if (set) given.values[name] = "";
  }
  return given;
}

}  // namespace plimsoll::cli
