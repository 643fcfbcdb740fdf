// The studies of `measure`: what they say about values that are left out, and what they tell.
#include "plimsoll/study/studies.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/formats/inline_model.hpp"
#include "plimsoll/study/family_columns.hpp"

namespace plimsoll::study {
namespace {

class Told final : public Progress {
 public:
  void update(std::string_view what) override { lines.emplace_back(what); }
  bool has(const std::string& line) const {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  }
  std::vector<std::string> lines;
};

network::NetworkSpec minigpt() {
  return *formats::read_inline_model("minigpt:d=8,L=1,V=9,s=8,heads=2");
}

plan::Job small_job() {
  plan::Job job;
  job.sequence = 8;
  return job;
}

Options sweep_over_sequence() {
  Options options;
  options.sweep = report::SweepAxis::kSequence;
  return options;
}

std::vector<std::int64_t> values_of(const report::SweepReport& sweep) {
  std::vector<std::int64_t> values;
  for (const report::SweepPoint& point : sweep.points) values.push_back(point.value);
  return values;
}

plan::ShapeFamily family(const network::Dims& shape, std::int64_t bytes) {
  plan::ShapeFamily result;
  result.shape = shape;
  result.bytes = bytes;
  result.saved_by = "Mm";
  return result;
}

}  // namespace

TEST_CASE(
    "sweep: a model stops at its learned positions and says so; an inline one is built anew") {
  Told told;
  network::NetworkSpec gpt2 = minigpt();
  gpt2.family = network::Family::kGpt2;
  gpt2.model_type = "gpt2";
  const auto stopped = sweep(gpt2, small_job(), sweep_over_sequence(), told);
  REQUIRE(stopped.has_value());
  CHECK(values_of(*stopped) == std::vector<std::int64_t>{2, 4, 8});
  REQUIRE(stopped->notes.size() == 1);
  CHECK(stopped->notes[0].find("seq 16: left out") == 0);
  CHECK(stopped->notes[0].find("at most 8") != std::string::npos);

  const auto rebuilt = sweep(minigpt(), small_job(), sweep_over_sequence(), told);
  REQUIRE(rebuilt.has_value());
  CHECK(values_of(*rebuilt) == std::vector<std::int64_t>{2, 4, 8, 16});
  REQUIRE(rebuilt->notes.size() == 1);
  CHECK(rebuilt->notes[0].find("built anew") != std::string::npos);
  for (const report::SweepPoint& point : rebuilt->points) CHECK(point.measured == point.calculated);
}

TEST_CASE("sweep: a width that the heads do not divide is named") {
  Told told;
  Options options;
  options.sweep = report::SweepAxis::kWidth;
  const auto result = sweep(*formats::read_inline_model("minigpt:d=12,L=1,V=9,s=8,heads=4"),
                            small_job(), options, told);
  REQUIRE(result.has_value());
  CHECK(values_of(*result) == std::vector<std::int64_t>{12, 24});
  REQUIRE(result->notes.size() == 2);
  CHECK(result->notes[0] == "width 3: left out, 4 heads do not divide it");
}

TEST_CASE("families: what only the run saved is a row, and what only the calculation has, too") {
  FamilyColumn once;
  once.calculated = {family({2, 8}, 64), family({3, 3}, 36)};
  once.measured = BytesByFamily{{{"(2, 8)", "fp32", false}, 64}, {{"(5,)", "int64", false}, 40}};
  FamilyColumn twice;
  twice.calculated = {family({4, 8}, 128), family({3, 3}, 36)};
  twice.measured = BytesByFamily{{{"(4, 8)", "fp32", false}, 128}};
  const report::FamiliesReport report = compare_families(once, twice);
  REQUIRE(report.rows.size() == 3);
  CHECK(report.rows[0].grows());
  CHECK(report.rows[0].measured == 64);
  CHECK(report.rows[0].measured_doubled == 128);
  CHECK_FALSE(report.rows[1].grows());
  CHECK(report.rows[1].measured == 0);
  CHECK(report.rows[2].shape == "(5,)");
  CHECK(report.rows[2].calculated == 0);
  CHECK(report.rows[2].measured == 40);
}

TEST_CASE("families: calculated and measured have the same ones") {
  Told told;
  const auto report = families(minigpt(), small_job(), {}, told);
  REQUIRE(report.has_value());
  CHECK_FALSE(report->rows.empty());
  for (const report::FamilyRow& row : report->rows) {
    CAPTURE(row.shape);
    CHECK(row.measured == row.calculated);
    CHECK(row.measured_doubled == row.calculated_doubled);
  }
  CHECK(told.has("families: twice the batch"));
}

TEST_CASE("studies tell every run and every step") {
  Told told;
  REQUIRE(reconcile(minigpt(), small_job(), {}, told).has_value());
  for (const char* line : {"calculating", "dry run on the meta device, step 3 of 3",
                           "measuring, step 1 of 3", "measuring, step 3 of 3"}) {
    CAPTURE(line);
    CHECK(told.has(line));
  }
  Options options;
  options.bisect_bytes = 1 << 20;
  REQUIRE(bisect(minigpt(), small_job(), options, told).has_value());
  CHECK(told.has("bisection: trying batch 2, step 2 of 2"));
  REQUIRE(fit_batch(minigpt(), small_job(), options, told).has_value());
  CHECK(told.has("fit over batches: batch 8 of 8"));
}

TEST_CASE("a run that cannot fit is refused before it begins") {
  Told told;
  Options options;
  options.memory_available = 1000;
  const auto refused = reconcile(minigpt(), small_job(), options, told);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ExitCode::kEnvironment);
  CHECK_FALSE(told.has("measuring, step 1 of 3"));
}

}  // namespace plimsoll::study
