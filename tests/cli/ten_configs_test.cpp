// Ten published configs as a new user has them, on a card of 24 GiB and one of 80 GB: every line
// fits, verdicts agree everywhere, and what is advised fits when it is run as printed.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/terminal.hpp"

#include "tests/cli/call.hpp"
#include "tests/cli/output_checks.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;

constexpr const char* kConfigs[] = {"gpt2",      "llama-3-8b", "qwen3-8b",    "gemma-3-1b",
                                    "phi-4",     "olmo-2-7b",  "pythia-1.4b", "mistral-nemo-12b",
                                    "falcon-7b", "bloom-7b1"};
constexpr const char* kCards[] = {"rtx-4090", "h100-80g"};

// The commands under "Changes", whose long lines go on behind a backslash.
std::vector<std::string> printed_commands(const std::string& text) {
  std::vector<std::string> commands;
  std::istringstream lines(text);
  bool goes_on = false;
  for (std::string line; std::getline(lines, line);) {
    if (!goes_on && !line.starts_with("     plimsoll ")) continue;
    goes_on ? commands.back() += "\n" + line : commands.emplace_back(line);
    goes_on = line.ends_with('\\');
  }
  return commands;
}

std::string verdict_in(const std::string& text, const std::string& card) {
  const std::string begin = "Verdict: ";
  const std::size_t at = text.find(begin);
  REQUIRE(at != std::string::npos);
  const std::size_t end = text.find(" on " + card, at);
  REQUIRE(end != std::string::npos);
  return text.substr(at + begin.size(), end - at - begin.size());
}

void check_card(const std::string& config, const std::string& card) {
  const test::Call plan = test::call({"plan", config, "--device", card});
  test::check_width(plan.out);
  CHECK(plan.err.empty());
  const std::string verdict = verdict_in(plan.out, card);
  const bool fits = verdict != "does not fit";
  CHECK(plan.code == (fits ? 0 : 1));
  const test::Call fit = test::call({"fit", config, "--device", card, "--json"});
  CHECK(fit.code == plan.code);
  const json limits = json::parse(fit.out);
  CHECK(limits["verdict"] == verdict);
  CHECK(plan.out.find(grouped(limits["needed"])) != std::string::npos);
  CHECK(fits == !limits["largest_batch"]["timeline"].is_null());
  const std::vector<std::string> commands = printed_commands(plan.out);
  CHECK(commands.size() == limits["changes"].size());
  CHECK(commands.empty() == fits);
  // The last one costs most: the others are checked over many jobs (tests/property/fit_test.cpp).
  if (commands.empty()) return;
  CAPTURE(commands.back());
  const test::Call changed = test::call_shell(commands.back());
  CHECK(changed.code == 0);
  CHECK(verdict_in(changed.out, card) != "does not fit");
}

TEST_CASE("ten configs on a card of 24 GiB and one of 80 GB") {
  const test::TemporaryFolder folder;
  for (const char* name : kConfigs) {
    CAPTURE(name);
    std::ifstream stream(std::string("tests/truth/hf/models/") + name + ".json");
    REQUIRE(stream.good());
    const json truth = json::parse(stream);
    const std::string config = folder.write(std::string(name) + ".json", truth["config"].dump());
    for (const char* card : kCards) {
      CAPTURE(card);
      check_card(config, card);
    }
  }
}

TEST_CASE("on a terminal of 100 columns no line is wider either") {
  test::CallOptions terminal;
  terminal.stdout_is = test::Stdout::kTerminal;
  terminal.environment = {"NO_COLOR=1"};
  for (const char* command : {"plan", "fit"}) {
    CAPTURE(command);
    test::check_width(test::call({command, "llama-3-8b", "--device", "rtx-4090"}, terminal).out);
  }
}

}  // namespace
}  // namespace plimsoll
