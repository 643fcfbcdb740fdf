// Measured steps against the byte tables of libtorch 2.13, and the meter's behaviour at its edges.
#include "plimsoll/engine/meter/meter.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "plimsoll/engine/library/saved_tensor_recorder.hpp"
#include "plimsoll/engine/library/version.hpp"
#include "tests/engine/modules.hpp"

namespace plimsoll::engine {
namespace {

using tests::Gpt;
using tests::GptShape;
using timeline::EventKind;
using timeline::Phase;
using timeline::PhaseFigures;
using timeline::Tag;
using timeline::Timeline;

struct TrainedStep {
  PhaseFigures zero_grad, forward, loss, backward, optimizer;
};

// The third step of three, absolute bytes.
TrainedStep third_step(const GptShape& shape, std::int64_t batch, at::ScalarType dtype) {
  at::set_num_threads(1);
  Meter meter;
  const std::int64_t base = meter.start_bytes();
  Gpt model(shape);
  model->to(dtype);
  const auto ids = torch::randint(shape.vocabulary, {batch, shape.sequence}, torch::kLong);
  const auto targets = torch::randint(shape.vocabulary, {batch, shape.sequence}, torch::kLong);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));
  for (std::int32_t step = 0; step < 3; ++step) {
    at::Tensor logits, loss;
    meter.begin_phase({Phase::kZeroGrad, step});
    optimizer.zero_grad();
    meter.begin_phase({Phase::kForward, step});
    logits = model(ids);
    meter.begin_phase({Phase::kLoss, step});
    loss = tests::next_token_loss(logits, targets);
    meter.end_phase();
    logits.reset();
    meter.begin_phase({Phase::kBackward, step});
    loss.backward();
    meter.begin_phase({Phase::kOptimizer, step});
    optimizer.step();
    meter.end_phase();
  }
  CHECK(meter.current() > base);
  const std::vector<PhaseFigures> phases = timeline::phase_figures(meter.finish());
  REQUIRE(phases.size() == 15);
  return {phases[10], phases[11], phases[12], phases[13], phases[14]};
}

void check_figures(const PhaseFigures& figures, std::int64_t start, std::int64_t end,
                   std::int64_t peak) {
  CHECK(figures.start == start);
  CHECK(figures.end == end);
  CHECK(figures.peak == peak);
}

}  // namespace

TEST_CASE("a third fp32 step of the MiniGPT matches the reference table") {
  const TrainedStep step = third_step({}, 4, torch::kFloat);
  check_figures(step.zero_grad, 14'802'944, 11'103'232, 14'802'944);
  check_figures(step.forward, 11'103'232, 20'813'312, 20'813'312);
  check_figures(step.loss, 20'813'312, 21'837'320, 21'837'320);
  check_figures(step.backward, 20'813'320, 14'802'948, 22'861'320);
  check_figures(step.optimizer, 14'802'948, 14'802'948, 15'826'960);
}

}  // namespace plimsoll::engine
