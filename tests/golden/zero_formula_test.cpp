// Model state as published: the ZeRO paper's figure for 7.5 B parameters on 64 ranks, and the fp32
// figures of 7 B on 8.
#include <cmath>

#include <doctest/doctest.h>

#include "plimsoll/plan/model_states.hpp"
#include "plimsoll/plan/traffic.hpp"

namespace plimsoll::test {
namespace {

using shard::Stage;

constexpr Stage kStages[] = {Stage::kNothing, Stage::kOptimizer, Stage::kGradients,
                             Stage::kParameters};

double stage_gigabytes(const char* recipe, Stage stage, double parameters, std::int32_t ranks) {
  const plan::ModelStateRecipe* known = plan::find_model_state_recipe(recipe);
  REQUIRE(known != nullptr);
  return plan::model_states(*known, parameters, ranks, static_cast<int>(stage)).total() / 1e9;
}

// As printed: rounded to one decimal.
double printed(double value) { return std::round(10 * value) / 10; }

}  // namespace

TEST_CASE("zero-paper: 7.5 B parameters on 64 ranks need 120, 31.4, 16.6, 1.9 GB") {
  const double expected[] = {120, 31.4, 16.6, 1.9};
  for (std::size_t s = 0; s < 4; ++s) {
    CHECK(printed(stage_gigabytes("zero-paper", kStages[s], 7.5e9, 64)) == expected[s]);
  }
}

TEST_CASE("fp32: 7 B parameters on 8 ranks need 112, 63, 38.5, 14 GB") {
  const double expected[] = {112, 63, 38.5, 14};
  for (std::size_t s = 0; s < 4; ++s) {
    CHECK(stage_gigabytes("fp32", kStages[s], 7e9, 8) == doctest::Approx(expected[s]));
  }
}

TEST_CASE("megatron: 18 bytes, or 6 + 12/R with its distributed optimizer") {
  CHECK(stage_gigabytes("megatron", Stage::kNothing, 1e9, 8) == doctest::Approx(18));
  CHECK(stage_gigabytes("megatron", Stage::kOptimizer, 1e9, 8) == doctest::Approx(6 + 12.0 / 8));
}

TEST_CASE("mixed is no paper's recipe but plimsoll's: 18, 6, 4, 2 GB of 1 B on 8 ranks") {
  const double expected[] = {18, 6, 4, 2};
  for (std::size_t s = 0; s < 4; ++s) {
    CHECK(stage_gigabytes("mixed", kStages[s], 1e9, 8) == doctest::Approx(expected[s]));
  }
}

TEST_CASE("on paper stage 1 moves 3 Psi when built naively, stage 3 moves 3 Psi at most") {
  CHECK(plan::textbook_traffic(Stage::kNothing, 0.2, false).ours == 2);
  CHECK(plan::textbook_traffic(Stage::kOptimizer, 0.2, false).naive == 3);
  CHECK(plan::textbook_traffic(Stage::kOptimizer, 0.2, false).ours == 2);
  CHECK(plan::textbook_traffic(Stage::kGradients, 0.2, false).ours == 2);
  CHECK(plan::textbook_traffic(Stage::kParameters, 0.2, false).ours == doctest::Approx(2.8));
  CHECK(plan::textbook_traffic(Stage::kParameters, 0.2, true).ours == 3);
}

}  // namespace plimsoll::test
