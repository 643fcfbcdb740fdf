// The program as a process: streams, colours, exit codes, the frozen list of options.
#include "plimsoll/cli/program.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <pty.h>
#include <regex>
#include <set>
#include <string>
#include <unistd.h>

#include <doctest/doctest.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/table.hpp"

#include "tests/cli/call.hpp"
#include "tests/cli/output_checks.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using test::call;
using test::CallOptions;
using test::Stdout;
using Arguments = std::vector<std::string>;

bool has_escape(const std::string& text) { return text.find('\x1b') != std::string::npos; }

std::set<std::string> options_in(const std::string& help) {
  static const std::regex kOption("^  (--[a-z-]+)", std::regex::multiline);
  std::set<std::string> options;
  for (std::sregex_iterator it(help.begin(), help.end(), kOption), end; it != end; ++it) {
    options.insert((*it)[1]);
  }
  return options;
}

std::set<std::string> job_options_and(std::set<std::string> more) {
  more.insert({"--batch",      "--seq",          "--accumulate",     "--precision", "--state-dtype",
               "--loss-dtype", "--optimizer",    "--optimizer-impl", "--attention", "--checkpoint",
               "--dropout",    "--hold-logits",  "--targets",        "--semantics", "--backend",
               "--threads",    "--mode",         "--ranks",          "--zero",      "--device",
               "--reserve",    "--master-dtype", "--grad-dtype",     "--context",   "--kv-dtype",
               "--prefetch",   "--reshard-root", "--no-sync",        "--snapshot",  "--lora",
               "--freeze",     "--loss-chunks"});
  return more;
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    longest = std::max(longest, text_width(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return longest;
}

TEST_CASE("the options of every command are frozen") {
  CHECK(options_in(call({"plan", "--help"}).out) == job_options_and({"--first-step", "--json"}));
  CHECK(options_in(call({"measure", "--help"}).out) ==
        job_options_and({"--fit-batch", "--families", "--sweep", "--bisect", "--steps", "--json"}));
  CHECK(options_in(call({"report", "--help"}).out) ==
        job_options_and({"--out", "--trace", "--measured", "--first-step", "--json"}));
  CHECK(
      options_in(call({"train", "--help"}).out) ==
      job_options_and({"--data", "--token-bytes", "--steps", "--lr", "--out", "--init",
                       "--schedule", "--warm-up", "--clip", "--seed", "--held-out", "--eval-every",
                       "--nan", "--every", "--keep", "--resume", "--restart", "--force"}));
  CHECK(options_in(call({"params", "--help"}).out) ==
        std::set<std::string>{"--against", "--lora", "--freeze", "--json"});
  CHECK(options_in(call({"models", "--help"}).out) == std::set<std::string>{"--json"});
  CHECK(options_in(call({"math", "--help"}).out) ==
        job_options_and({"--dtype", "--tokens-per-second", "--json"}));
  CHECK(options_in(call({"explain", "--help"}).out) == job_options_and({"--json"}));
  CHECK(options_in(call({"infer", "--help"}).out) ==
        std::set<std::string>{"--batch", "--seq", "--context", "--dtype", "--kv-dtype", "--device",
                              "--reserve", "--json"});
  CHECK(options_in(call({"devices", "--help"}).out) == std::set<std::string>{"--json"});
  CHECK(options_in(call({"doctor", "--help"}).out) == std::set<std::string>{"--json"});
}

TEST_CASE("help and version, wherever they are asked for") {
  const std::string overview = call({"help"}).out;
  for (const Arguments& asked : {Arguments{"--help"}, {"-h"}, {"help", "--help"}}) {
    CHECK(call(asked).out == overview);
    CHECK(call(asked).code == 0);
  }
  const std::string plan = call({"help", "plan"}).out;
  CHECK(call({"plan", "--help"}).out == plan);
  CHECK(call({"plan", "-h"}).out == plan);
  CHECK(call({"plan", "nothing", "--batch", "x", "--help"}).out == plan);
  CHECK(call({"--version"}).out == "plimsoll 0.1.0\n");
}

TEST_CASE("every setting can be given the value it has when it is not given") {
  const std::string text = call({"plan", test::kMiniGpt, "--json"}).out;
  const Arguments given = {
      "plan",     test::kMiniGpt,   "--json",   "--batch",      "1",        "--seq",
      "64",       "--accumulate",   "1",        "--precision",  "fp32",     "--state-dtype",
      "fp32",     "--loss-dtype",   "fp32",     "--optimizer",  "adamw",    "--optimizer-impl",
      "plimsoll", "--attention",    "auto",     "--checkpoint", "none",     "--dropout",
      "0",        "--targets",      "separate", "--semantics",  "plimsoll", "--backend",
      "cpu",      "--threads",      "1",        "--mode",       "train",    "--ranks",
      "1",        "--zero",         "0",        "--device",     "none",     "--reserve",
      "0",        "--master-dtype", "none",     "--grad-dtype", "fp32"};
  const test::Call result = call(given);
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  // Apart from the assumptions the two plans are one.
  const auto figures = [](const std::string& json) { return json.substr(json.find("\"posts\"")); };
  CHECK(figures(result.out) == figures(text));
  // A flag is given or not; all other settings can be said.
  CHECK(result.out.find("not given") == result.out.find("hold-logits off: not given") + 17);
  CHECK(result.out.find("not given") == result.out.rfind("not given"));
}

TEST_CASE("pipes get no escape codes, terminals do unless NO_COLOR is set or TERM is dumb") {
  for (const Arguments& arguments :
       {Arguments{"plan", "gpt2"}, {"params", "gpt2"}, {"models"}, {"doctor"}, {"help"}}) {
    CAPTURE(arguments[0]);
    const std::string plain = call(arguments).out;
    CHECK_FALSE(has_escape(plain));
    CallOptions terminal{Stdout::kTerminal, {}, 100};
    CHECK(has_escape(call(arguments, terminal).out));
    terminal.environment = {"NO_COLOR=1"};
    if (arguments[0] != "doctor") CHECK(call(arguments, terminal).out == plain);
    terminal.environment = {"TERM=dumb"};
    CHECK_FALSE(has_escape(call(arguments, terminal).out));
  }
  CHECK_FALSE(has_escape(call({"plan", "gpt2", "--json"}, {Stdout::kTerminal, {}, 100}).out));
}

TEST_CASE("lines stay within 100 columns, and within the terminal where text can be broken") {
  for (const Arguments& arguments :
       {Arguments{"plan", "llama-3.1-405b", "--seq", "131072", "--precision", "mixed"},
        {"plan", test::kMiniGpt, "--backend", "cuda", "--batch", "8"},
        {"plan", test::kMiniGpt, "--batch", "100000000000", "--accumulate", "2"},
        {"plan", "gpt2", "--accumulate", "64", "--first-step"},
        {"params", "llama-3.1-405b", "--against", "405000000000"},
        {"math", "llama-3.1-405b", "--seq", "131072", "--batch", "64", "--device", "b200",
         "--tokens-per-second", "100"},
        {"math", "gpt2", "--checkpoint", "matmuls"},
        {"math", "batched", "1000", "1000", "1000", "10000000", "--device", "mi300x"},
        {"math", "dot", "1000000000000", "--dtype", "fp64"},
        {"infer", "llama-3.1-405b", "--batch", "1024", "--context", "131072", "--device", "b200"},
        {"explain", "llama-3.1-405b", "--seq", "131072", "--device", "h100-80g"},
        {"explain", test::kMiniGpt, "closed_form.A"},
        {"devices"},
        {"devices", "h100-80g"},
        {"models"},
        {"doctor"},
        {"help"},
        {"help", "math"},
        {"help", "plan"},
        {"help", "measure"}}) {
    CAPTURE(arguments[0]);
    CHECK(longest_line(call(arguments).out) <= 100);
  }
  const CallOptions narrow{Stdout::kTerminal, {"NO_COLOR=1"}, 80};
  CHECK(longest_line(call({"plan", "gpt2"}, narrow).out) <= 80);
}

// What a LinePrinter writes to a descriptor until it is gone.
std::string drawn_on(int write_end, int read_end, const std::vector<std::string>& updates) {
  {
    LinePrinter printer(write_end);
    for (const std::string& update : updates) printer.update(update);
  }
  ::close(write_end);
  // A terminal hands over what was written in pieces.
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = ::read(read_end, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  ::close(read_end);
  return text;
}

TEST_CASE(
    "progress overwrites one line of a terminal and leaves nothing behind; pipes stay silent") {
  ::setenv("TERM", "xterm", 1);
  ::winsize size{50, 40, 0, 0};
  int reader = -1;
  int writer = -1;
  REQUIRE(::openpty(&reader, &writer, nullptr, nullptr, &size) == 0);
  const std::string text = drawn_on(writer, reader, {"step 1", "step 2 " + std::string(60, 'x')});
  CHECK(text == "\rstep 1\x1b[K\rstep 2 " + std::string(29, 'x') + "...\x1b[K\r\x1b[K");
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  CHECK(drawn_on(ends[1], ends[0], {"step 1"}).empty());
}

TEST_CASE("a reader that goes away is no error; a full or closed stdout is one of the machine") {
  CHECK(call({"plan", "gpt2"}, {Stdout::kClosedPipe, {}, 100}).code == 0);
  CHECK(call({"plan", "gpt2"}, {Stdout::kClosedPipe, {}, 100}).err.empty());
  for (const Stdout broken : {Stdout::kFull, Stdout::kClosed}) {
    const test::Call result = call({"plan", "gpt2"}, {broken, {}, 100});
    CHECK(result.code == 3);
    CHECK(test::line_count(result.err) == 1);
  }
}

TEST_CASE("what commands throw becomes an exit code and one line") {
  const auto code_of = [](const std::function<Result<cli::Output>()>& work) {
    const auto output = cli::guarded(work);
    REQUIRE_FALSE(output);
    CHECK(format_error(output.error()).find('\n') == std::string::npos);
    return output.error();
  };
  CHECK(code_of([]() -> Result<cli::Output> { throw_overflow(); }).code == ExitCode::kBadInput);
  CHECK(code_of([]() -> Result<cli::Output> { throw std::bad_alloc(); }).code ==
        ExitCode::kEnvironment);
  const Error bug = code_of([]() -> Result<cli::Output> {
    check(false, "two and two are five");
    return cli::Output{};
  });
  CHECK(bug.code == ExitCode::kInternal);
  CHECK(bug.what.find("tests/cli/program_test.cpp:") != std::string::npos);
  CHECK(bug.what.find("two and two are five") != std::string::npos);
}

TEST_CASE("a path wins over a name, and names know no upper case") {
  CHECK(call({"params", "GPT2", "--json"}).out == call({"params", "gpt2", "--json"}).out);
  const test::TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 12})");
  const test::Call result = call({"params", folder.path()});
  CHECK(result.code == 0);
  CHECK(result.out.starts_with(folder.path() + ": "));
}

TEST_CASE("measure in a folder that was removed is one error of the machine") {
  const test::Call result = test::call_shell(
      "folder=$(mktemp -d) && cd \"$folder\" && rmdir \"$folder\" && plimsoll measure " +
      test::kMiniGpt);
  CHECK(result.code == 3);
  CHECK(test::line_count(result.out) == 1);
  CHECK(result.out.find("[measure] the working directory cannot be found") == 0);
}

#if !PLIMSOLL_HAS_ENGINE
TEST_CASE("without the engine measure says what is missing and how to get it") {
  const test::Call result = call({"measure", test::kMiniGpt, "--fit-batch"});
  CHECK(result.code == 3);
  CHECK(result.out.empty());
  CHECK(test::line_count(result.err) == 1);
  CHECK(result.err.find("Hint: `./run plimsoll measure") != std::string::npos);
  CHECK(call({"doctor"}).code == 0);
}

TEST_CASE("without the engine train says what is missing and how to get it") {
  const test::Call result = call({"train", test::kMiniGpt, "--data", "README.md", "--steps", "1",
                                  "--lr", "1e-3", "--out", "/nowhere"});
  CHECK(result.code == 3);
  CHECK(result.out.empty());
  CHECK(test::line_count(result.err) == 1);
  CHECK(result.err.find("Hint: `./run plimsoll train") != std::string::npos);
}
#endif

}  // namespace
}  // namespace plimsoll
