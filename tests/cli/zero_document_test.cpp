// The tables of docs/zero.md are what the program prints and the formulas give.
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/plan/model_states.hpp"
#include "plimsoll/plan/traffic.hpp"

#include "tests/checked_table.hpp"
#include "tests/cli/call.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using shard::Stage;

constexpr const char* kDocument = "docs/zero.md";
constexpr int kRanks = 8;

json gpt2_plan(int stage, bool reshard_root) {
  std::vector<std::string> arguments{"plan",    "gpt2",
                                     "--seq",   "64",
                                     "--ranks", fmt::format("{}", kRanks),
                                     "--zero",  fmt::format("{}", stage),
                                     "--json"};
  if (reshard_root) arguments.emplace_back("--reshard-root");
  const test::Call result = test::call(arguments);
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  return json::parse(result.out);
}

std::string traffic_row(int stage, bool reshard_root) {
  const json plan = gpt2_plan(stage, reshard_root);
  const auto psi = plan["model"]["parameters"].get<std::int64_t>();
  // Blocks of gpt2: 12 D^2 weights and 13 D biases and norms in each of 12.
  constexpr std::int64_t kWidth = 768;
  const std::int64_t root = psi - 12 * (12 * kWidth * kWidth + 13 * kWidth);
  const double share = static_cast<double>(root) / static_cast<double>(psi);
  const auto paper = plan::textbook_traffic(static_cast<Stage>(stage), share, reshard_root);
  const double unit = static_cast<double>(psi) * 4 * (kRanks - 1) / kRanks;
  std::int64_t bytes = 0;
  std::int64_t formula = 0;
  std::string collectives;
  for (const json& line : plan["traffic"]) {
    bytes += line["bytes"].get<std::int64_t>();
    formula += line["formula_bytes"].get<std::int64_t>();
    collectives +=
        (collectives.empty() ? "" : ", ") +
        fmt::format("{} {}", line["units"].get<int>(), line["collective"].get<std::string>());
  }
  // Each line's formula is rounded down to a byte.
  CHECK(static_cast<double>(formula) == doctest::Approx(paper.ours * unit).epsilon(1e-8));
  CHECK(bytes >= formula);
  CHECK(bytes - formula <= 13 * 3 * 4 * kRanks + 2);  // padding: < R elements a unit and collective
  const char* ours = stage < 3      ? "2 Psi e (R-1)/R"
                     : reshard_root ? "3 Psi e (R-1)/R"
                                    : "(3 Psi - Psi_root) e (R-1)/R";
  return fmt::format("| {}{} | {} Psi e (R-1)/R | {} | {} | {} | {} | {} |\n", stage,
                     reshard_root ? ", `--reshard-root`" : "", paper.naive,
                     grouped(static_cast<std::int64_t>(paper.naive * unit)), ours, collectives,
                     grouped(formula), grouped(bytes));
}

std::string traffic_table() {
  std::string table =
      "| stage | textbook | bytes | ours | collectives of a unit | formula, bytes | counted |\n"
      "|---|---|---|---|---|---|---|\n";
  for (int stage = 0; stage <= 3; ++stage) table += traffic_row(stage, false);
  return table + traffic_row(3, true);
}

std::string paper_row(const char* recipe, const char* name, double parameters, int ranks) {
  std::string row = fmt::format("| {} | {} |", name, ranks);
  for (int stage = 0; stage <= 3; ++stage) {
    const plan::ModelStateRecipe* known = plan::find_model_state_recipe(recipe);
    REQUIRE(known != nullptr);
    const plan::ModelStates states = plan::model_states(*known, parameters, ranks, stage);
    row += fmt::format(" {:.1f} |", states.total() / 1e9);
  }
  return row + "\n";
}

std::string paper_table() {
  return "| model state in GB (1e9) | R | stage 0 | 1 | 2 | 3 |\n|---|---|---|---|---|---|\n" +
         paper_row("fp32", "7 B parameters, fp32: 4 + 4 + 8 bytes", 7e9, 8) +
         paper_row("zero-paper", "7.5 B, `zero-paper`: 2 + 2 + 12", 7.5e9, 64) +
         paper_row("megatron", "7 B, `megatron`: 2 + 4 + 12", 7e9, 8);
}

}  // namespace

TEST_CASE("docs/zero.md: both tables of traffic and the figures on paper are the program's") {
  test::check_tables(kDocument, {{"traffic", traffic_table()}, {"paper", paper_table()}});
}

}  // namespace plimsoll
