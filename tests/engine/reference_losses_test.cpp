// The 12 recorded training runs of PyTorch (truth/reference_losses.json), run in one process from the
// same closed-form weights and tokens. Tolerances are those of the file's README.
#include <cmath>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/network/families/families.hpp"

#include "tests/engine/closed_form_run.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;

// Of the whole program: another test may choose the first kernel.
[[maybe_unused]] const bool kernels_are_those_of_the_record =
    (tests::use_kernels_of_the_record(), true);

json reference() {
  std::ifstream file(std::string(PLIMSOLL_TRUTH_DIR) + "/reference_losses.json");
  REQUIRE(file.good());
  return json::parse(file);
}

void check_close(double seen, double expected, double tolerance) {
  CHECK(std::abs(seen - expected) <= tolerance * std::abs(expected));
}

// Final sums cancel, so they are compared against sqrt(numel * sumsq).
void check_parameters(const tests::ClosedFormRun& run, const json& checksums, double tolerance) {
  for (const auto& [name, expected] : checksums.items()) {
    CAPTURE(name);
    const at::Tensor p = run.parameter(name).to(at::kDouble);
    const double squares = p.square().sum().item<double>();
    check_close(squares, expected["sumsq"].get<double>(), tolerance);
    const double scale = std::sqrt(static_cast<double>(p.numel()) * squares);
    CHECK(std::abs(p.sum().item<double>() - expected["sum"].get<double>()) <= tolerance * scale);
  }
}

}  // namespace

TEST_CASE("reference losses, gradient norms and final parameters: 12 cases") {
  at::set_num_threads(1);
  const json cases = reference()["cases"];
  CHECK(cases.size() == 12);
  for (const auto& [name, expected] : cases.items()) {
    CAPTURE(name);
    // The reference summed with another library and other loops: what its README allows for the
    // rounding of 10 steps in each precision.
    const double tolerance = expected["config"]["dtype"] == "fp64" ? 1e-9 : 3e-6;
    tests::ClosedFormRun run(expected["config"]);
    CHECK(run.network().parameter_elements() == expected["params"].get<std::int64_t>());
    for (std::size_t step = 0; step < expected["losses"].size(); ++step) {
      CAPTURE(step);
      const double loss = run.step();
      check_close(loss, expected["losses"][step].get<double>(), tolerance);
      check_close(run.gradient_norm(), expected["grad_norms"][step].get<double>(), tolerance);
    }
    check_parameters(run, expected["final_checksums"], tolerance);
  }
}

}  // namespace plimsoll
