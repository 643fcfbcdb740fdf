// The memory notebook: every figure of its reference run (tests/truth/notebook.json, PyTorch 2.8 on
// an RTX 3090) and the calculations it should have made instead. Integers are bytes.
#include "tests/golden/notebook.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/plan/closed_form.hpp"
#include "plimsoll/plan/plan.hpp"

namespace plimsoll::test {
namespace {

using network::Backend;
using network::DType;

std::int64_t sum_of_terms(const network::NetworkSpec& spec) {
  std::int64_t sum = 0;
  for (const network::ParameterTerm& term : network::parameter_terms(spec)) sum += term.count;
  return sum;
}

}  // namespace

TEST_CASE("notebook: parameters of three models, and what 12 L D^2 + V D forgets") {
  for (const nlohmann::json& row : notebook().at("parameters")) {
    const network::NetworkSpec spec = notebook_model(row);
    CAPTURE(spec.title);
    const std::int64_t rough = plan::rough_gpt_parameters(spec.width, spec.layers, spec.vocabulary);
    CHECK(sum_of_terms(spec) == row.at("exact"));
    CHECK(rough == row.at("incomplete_12Ld2_plus_Vd"));
    CHECK(sum_of_terms(spec) - rough == term(spec, "position_embedding") + term(spec, "norms"));
    if (!row.contains("gap")) continue;
    const nlohmann::json& gap = row.at("gap");
    CHECK(term(spec, "position_embedding") == gap.at("position_embedding_sd"));
    CHECK(term(spec, "norms") == gap.at("block_layer_norms_4Ld").get<std::int64_t>() +
                                     gap.at("final_layer_norm_2d").get<std::int64_t>());
  }
}

TEST_CASE("notebook: parameters of the three sizes in millions") {
  for (const nlohmann::json& size : notebook().at("sizes")) {
    const auto millions = static_cast<double>(sum_of_terms(notebook_model(size))) / 1e6;
    CHECK(fmt::format("{:.1f}", millions) ==
          fmt::format("{:.1f}", size.at("params_millions").get<double>()));
  }
}

TEST_CASE("notebook: the four posts at batch 8") {
  const nlohmann::json& row = notebook().at("posts_at_batch_8");
  const network::NetworkSpec spec = notebook_model(row);
  const auto plan = plan::make_plan(spec, notebook_job(row.at("B"), row.at("s")));
  REQUIRE(plan.has_value());
  const plan::Posts& posts = plan->posts;
  const plan::LedgerLine& activations = plan->ledger.as_saved;
  CHECK(posts.parameters == row.at("P"));
  CHECK(posts.gradients == row.at("G"));
  CHECK(posts.optimizer() == row.at("O"));
  CHECK(posts.moments == row.at("O_moments"));
  CHECK(posts.step_counters == row.at("O_step_counters"));
  CHECK(activations.bytes == row.at("A"));
  CHECK(activations.count == row.at("saved_tensors"));
  CHECK(posts.parameters + posts.gradients + posts.optimizer() + activations.bytes ==
        row.at("total"));
}

TEST_CASE("notebook: A = A0 + k B for all six batches") {
  const nlohmann::json& row = notebook().at("affine_in_batch");
  const network::NetworkSpec spec = notebook_model(row);
  const std::int64_t k = as_saved(spec, 2) - as_saved(spec, 1);
  const std::int64_t constant = as_saved(spec, 1) - k;
  CHECK(k == row.at("k"));
  CHECK(constant == row.at("A0"));
  CHECK(row.at("A").size() == 6);
  for (const auto& [batch, bytes] : row.at("A").items()) {
    CAPTURE(batch);
    CHECK(as_saved(spec, std::stoll(batch)) == bytes);
    CHECK(constant + k * std::stoll(batch) == bytes);
  }
  const std::int64_t parameter_bytes = 4 * sum_of_terms(spec);
  CHECK(printed(static_cast<double>(constant) / static_cast<double>(parameter_bytes), 4) ==
        printed(row.at("A0_over_P"), 4));
  CHECK(printed(notebook_coefficient(spec), 2) == printed(row.at("coefficient_c"), 2));
}

TEST_CASE("notebook: sweep over the sequence at batch 8") {
  const nlohmann::json& sweep = notebook().at("sweep_s");
  CHECK(sweep.at("A").size() == 5);
  for (const auto& [sequence, bytes] : sweep.at("A").items()) {
    CAPTURE(sequence);
    nlohmann::json row = sweep;
    row["s"] = std::stoll(sequence);
    CHECK(as_saved(notebook_model(row), sweep.at("B")) == bytes);
  }
}

TEST_CASE("notebook: sweep over the width at batch 8, A0 and k") {
  const nlohmann::json& sweep = notebook().at("sweep_d");
  CHECK(sweep.at("rows").size() == 3);
  for (const nlohmann::json& row : sweep.at("rows")) {
    const network::NetworkSpec spec = notebook_model(merged(sweep, row));
    CAPTURE(spec.title);
    const std::int64_t k = as_saved(spec, 9) - as_saved(spec, 8);
    CHECK(as_saved(spec, 8) == row.at("A_at_8"));
    CHECK(k == row.at("k"));
    CHECK(as_saved(spec, 8) - 8 * k == row.at("A0"));
  }
}

TEST_CASE("notebook: the law of c is the ledger's k to the byte") {
  const nlohmann::json& sweep = notebook().at("sweep_d");
  for (const nlohmann::json& row : sweep.at("rows")) {
    const network::NetworkSpec spec = notebook_model(merged(sweep, row));
    CAPTURE(spec.title);
    for (const auto backend : {Backend::kCpu, Backend::kCuda}) {
      plan::Job two = notebook_job(2, spec.positions);
      two.backend = backend;
      plan::Job three = two;
      three.batch = 3;
      CHECK(plan::saved_bytes_per_sample(spec, spec.positions, DType::kFloat32, backend) ==
            Run(spec, three).ledger().as_saved.bytes - Run(spec, two).ledger().as_saved.bytes);
    }
    CHECK(plan::saved_bytes_per_sample(spec, spec.positions, DType::kFloat32, Backend::kCuda) ==
          row.at("k"));
  }
}

TEST_CASE("notebook: leading terms of c, 17 + 2/L + 2V/(L d)") {
  // law_of_c in words: 25.4609 at d=64, 21.4805 at d=128, 19.4902 at d=256.
  const std::map<std::int64_t, std::string> kPrinted = {
      {64, "25.4609"}, {128, "21.4805"}, {256, "19.4902"}};
  const nlohmann::json& sweep = notebook().at("sweep_d");
  for (const nlohmann::json& row : sweep.at("rows")) {
    const network::NetworkSpec spec = notebook_model(merged(sweep, row));
    CAPTURE(spec.title);
    const double c = notebook_coefficient(spec);
    CHECK(printed(c, 4) == kPrinted.at(spec.width));
    const auto layers = static_cast<double>(spec.layers);
    const auto width = static_cast<double>(spec.width);
    const double leading =
        17 + 2 / layers + 2 * static_cast<double>(spec.vocabulary) / (layers * width);
    // What is left: norm statistics (4 + 2/L), logsumexps (4 h / e) and indices (16 / (L e)), per D.
    const double small = (4 + 2 / layers + static_cast<double>(spec.heads) + 4 / layers) / width;
    // The same sum of a dozen doubles in another order: some units in the 16th digit.
    CHECK(c == doctest::Approx(leading + small).epsilon(1e-12));
    CHECK(small / c < 0.006);
  }
  CHECK(plan::activation_law(notebook_model(notebook().at("affine_in_batch")), 64, Backend::kCuda)
            .starts_with("17 + 2/L + 2V/(L D)"));
}

TEST_CASE("notebook: budgets by closed form with c = 34 at batch 1") {
  const nlohmann::json& table = notebook().at("closed_form_budget").at("c_34_batch_1");
  constexpr double kBytesInSixteenBitTraining = 34;
  for (const nlohmann::json& size : notebook().at("sizes")) {
    const std::string name = size.at("name");
    CAPTURE(name);
    const plan::ClosedFormPosts posts = closed_form(size, kBytesInSixteenBitTraining, 1);
    const std::vector<std::string> row = {gib(posts.parameters + posts.gradients + posts.optimizer),
                                          gib(posts.activations), gib(posts.total())};
    CHECK(row == table.at(name).get<std::vector<std::string>>());
  }
}

TEST_CASE("notebook: budgets by closed form with the measured c at batch 8") {
  const nlohmann::json& table = notebook().at("closed_form_budget").at("c_21.48_batch_8");
  for (const nlohmann::json& size : notebook().at("sizes")) {
    const std::string name = size.at("name");
    CAPTURE(name);
    const plan::ClosedFormPosts posts = closed_form(size, measured_coefficient(), 8);
    const std::vector<std::string> row = {gib_or_mib(posts.parameters), gib_or_mib(posts.gradients),
                                          gib_or_mib(posts.optimizer),
                                          gib_or_mib(posts.activations), gib_or_mib(posts.total())};
    CHECK(row == table.at(name).get<std::vector<std::string>>());
  }
}

TEST_CASE("notebook: largest batch, as printed and with A0") {
  const nlohmann::json& rows = notebook().at("closed_form_budget").at("largest_batch");
  for (const nlohmann::json& size : notebook().at("sizes")) {
    const std::string name = size.at("name");
    CAPTURE(name);
    for (const bool count_A0 : {false, true}) {
      const nlohmann::json& row =
          rows.at(count_A0 ? "with_A0" : "as_printed_by_the_reference").at(name);
      for (const auto& [gibibytes, batch] : row.items()) {
        CAPTURE(gibibytes);
        CHECK(as_json(largest_batch(size, std::stod(gibibytes), count_A0)) == batch);
      }
    }
  }
}

}  // namespace plimsoll::test
