// Reports from made-up figures: tables, reconciliation, the studies of measure.
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/table.hpp"
#include "plimsoll/base/terminal.hpp"
#include "plimsoll/formats/inline_model.hpp"
#include "plimsoll/report/doctor.hpp"
#include "plimsoll/report/measure_reports.hpp"

#include "tests/cli/schema_check.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using report::make_row;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a table aligns numbers right and breaks the last column") {
  Table table({{"name", Align::kLeft}, {"bytes"}, {"why", Align::kWrap}});
  table.row({"a", "1,000", "one two three"});
  table.rule();
  table.row({"sum", "12"});
  CHECK(table.text({24, false}) ==
        "  name  bytes  why\n"
        "  a     1,000  one two\n"
        "               three\n"
        "        -----\n"
        "  sum      12\n");
}

TEST_CASE("a table counts characters, not bytes, and titles that are all empty take no line") {
  Table table({{"", Align::kLeft}, {""}}, 0);
  table.row({"é", "1"});
  table.row({"ab", "2"});
  CHECK(table.text({}) == "é   1\nab  2\n");
}

TEST_CASE("words are broken at blanks only, however narrow the line") {
  CHECK(wrapped("a bb ccc", 0, 2, 4) == "a bb\n  ccc");
  CHECK(wrapped("a-very-long-word b", 0, 2, 4) == "a-very-long-word\n  b");
  CHECK(wrapped("", 0, 2, 4) == "");
}

TEST_CASE("escape codes only with colour; control characters never") {
  CHECK(bold("x", {100, false}) == "x");
  CHECK(bold("x", {100, true}) == "\x1b[1mx\x1b[0m");
  CHECK(visible("a\x1b[1m\nb\x7f") == "a?[1m?b?");
}

TEST_CASE("a row's difference is against the measurement, else against the dry-run") {
  CHECK(make_row("x", 10, 11, 12).difference == 2);
  CHECK(make_row("x", 10, 11, std::nullopt).difference == 1);
  CHECK_FALSE(make_row("x", 10, std::nullopt, std::nullopt).difference.has_value());
}

report::Reconciliation some_rows() {
  report::Reconciliation r;
  r.rows = {make_row("peak", 5000, 5000, 5000),
            make_row("optimizer peak", 100, 100, 160, "60 bytes of a counter"),
            make_row("saved tensors", 7, 7, 7, "", report::Unit::kCount)};
  return r;
}

TEST_CASE("differences without a cause are found") {
  report::Reconciliation r = some_rows();
  CHECK(report::unnamed_differences(r).empty());
  CHECK(contains(report::section_text(report::reconciliation_section(r), {}),
                 "3 lines compared, 1 differ, 0 of them"));
  r.rows.push_back(make_row("forward peak", 1, 1, 2));
  REQUIRE(report::unnamed_differences(r).size() == 1);
  CHECK(report::unnamed_differences(r)[0]->line == "forward peak");
  CHECK(contains(report::section_text(report::reconciliation_section(r), {}), "not named"));
}

TEST_CASE("a column that could not be had is null in JSON and a dash in text, with the reason") {
  report::Reconciliation r;
  r.rows = {make_row("peak", 5000, 5000, std::nullopt)};
  r.measured_reason = "no CUDA device";
  const auto value = report::reconciliation_json(r);
  CHECK(value["rows"][0]["measured"].is_null());
  CHECK(value["rows"][0]["difference"] == 0);
  CHECK(value["reason"]["measured"] == "no CUDA device");
  CHECK(contains(report::section_text(report::reconciliation_section(r), {}),
                 "measured is missing where \"-\" stands: no CUDA device"));
}

TEST_CASE("the fit over batches is exact for the reference run's activations") {
  // truth/notebook.json: A0 = 3,667,524 and k = 2,815,488.
  std::vector<report::AffinePoint> points;
  for (const auto& [batch, bytes] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 6483012},
                                                          {2, 9298500},
                                                          {4, 14929476},
                                                          {8, 26191428},
                                                          {16, 48715332},
                                                          {32, 93763140}}) {
    points.push_back({batch, bytes, bytes, 0});
  }
  const report::AffineFit fit = report::fit_affine(points);
  CHECK(fit.of_measured);
  CHECK(fit.A0 == 3667524);
  CHECK(fit.k == 2815488);
  for (const report::AffinePoint& p : fit.points) CHECK(p.residual == 0);
  points[2].measured = std::nullopt;
  points[2].calculated += 60;
  const report::AffineFit bent = report::fit_affine(points);
  CHECK_FALSE(bent.of_measured);
  CHECK(bent.points[2].residual > 40);
}

report::Measurement some_measurement() {
  report::Measurement m;
  m.spec = *formats::read_inline_model("minigpt:d=96,L=4,V=997,s=50,heads=4");
  m.job.sequence = 50;
  m.job.assumptions = {"batch 1: not given"};
  m.parameters = {544608, 544608, 36, 36};
  m.reconciliation = some_rows();
  return m;
}

report::Measurement full_measurement() {
  report::Measurement m = some_measurement();
  m.fit_batch = report::fit_affine({{1, 100, std::nullopt, 0}, {2, 150, std::nullopt, 0}});
  m.families = report::FamiliesReport{
      7,
      {{"(350, 997)", "fp32", "log_softmax", 2791600, 5583200, 2791600, 5583200},
       {"(96, 384)", "fp32", "linear", 589824, 589824, std::nullopt, std::nullopt}},
      589824,
      {"B T = 350 and V = 350"},
      ""};
  m.sweep = report::SweepReport{report::SweepAxis::kWidth,
                                8,
                                {{64, 1000, 1000, 20, 122}, {128, 2100, std::nullopt, {}, {}}},
                                "no device",
                                {"seq 128: left out"}};
  m.bisect = report::BisectReport{1 << 30, {{1, 100, true}, {2, 2000000000, false}}, 1, 1};
  return m;
}

TEST_CASE("measurements are valid by their schema, with and without studies") {
  const json schema = test::read_schema("measure");
  for (const report::Measurement& m : {some_measurement(), full_measurement()}) {
    const json value = json::parse(report::json_text(report::measurement_json(m)));
    for (const std::string& violation : test::schema_violations(schema, value)) {
      FAIL_CHECK(violation);
    }
  }
}

TEST_CASE("the studies of measure read well") {
  const report::Measurement m = full_measurement();
  const std::string text = report::measurement_text(m, {});
  CHECK(contains(text, "A0 = 50 bytes, k = 50 bytes per sample"));
  CHECK(contains(text, "constant 589,824 (parameters 589,824), growing 2,791,600"));
  CHECK(contains(text, "not told apart: B T = 350 and V = 350"));
  CHECK(contains(text, "Sweep over width at batch 8"));
  CHECK(contains(text, "seq 128: left out"));
  CHECK(contains(text, "2.100"));
  CHECK(contains(text, "under 1,073,741,824 bytes (1.00 GiB): largest batch 1"));
  CHECK(contains(text, "not given: batch 1"));
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    CHECK(end - begin <= 100);
    begin = end + 1;
  }
}

TEST_CASE("doctor says when the library is another one than the facts describe") {
  report::Doctor doctor;
  doctor.version = "0.1.0";
  doctor.engine = true;
  doctor.libtorch = "2.9.0";
  doctor.known_libtorch = "2.13.0";
  doctor.threads = "1";
  CHECK(contains(report::doctor_text(doctor, {}), "they may be off for this version"));
  CHECK(contains(report::doctor_text(doctor, {}), "no MPI in this build"));
  doctor.mpi = true;
  CHECK(contains(report::doctor_text(doctor, {}), "or of mpirun"));
  doctor.facts_apply = true;
  CHECK(contains(report::doctor_text(doctor, {}), "they apply"));
  CHECK(contains(report::doctor_text(doctor, {}), "Nothing is missing."));
  const json value = json::parse(report::json_text(report::doctor_json(doctor)));
  CHECK(test::schema_violations(test::read_schema("doctor"), value).empty());
}

}  // namespace
}  // namespace plimsoll
