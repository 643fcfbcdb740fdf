// Measures two training steps of a module of one's own, and says what is alive at the peak.
#include <cstdio>
#include <string>

#include "plimsoll/meter.hpp"

namespace {

torch::nn::Sequential make_model() {
  return torch::nn::Sequential(torch::nn::Linear(512, 2048), torch::nn::GELU(),
                               torch::nn::LayerNorm(torch::nn::LayerNormOptions({2048})),
                               torch::nn::Linear(2048, 10));
}

void train_step(plimsoll::Meter& meter, std::int32_t step, torch::nn::Sequential& model,
                torch::optim::Optimizer& optimizer, const at::Tensor& x, const at::Tensor& y) {
  using plimsoll::Phase;
  optimizer.zero_grad();
  meter.begin_phase({Phase::kForward, step});
  at::Tensor loss = torch::nn::functional::cross_entropy(model->forward(x), y);
  meter.begin_phase({Phase::kBackward, step});
  loss.backward();
  meter.begin_phase({Phase::kOptimizer, step});
  optimizer.step();
  meter.end_phase();
}

}  // namespace

int main() {
  torch::nn::Sequential model = make_model();
  torch::optim::AdamW optimizer(model->parameters(), 1e-3);
  const at::Tensor x = torch::randn({64, 512}), y = torch::zeros({64}, torch::kLong);

  plimsoll::Meter meter;
  for (const at::Tensor& parameter : model->parameters()) {
    meter.adopt(parameter, plimsoll::Tag::kParameters);
  }
  for (std::int32_t step = 0; step < 2; ++step) train_step(meter, step, model, optimizer, x, y);
  const plimsoll::Timeline timeline = meter.finish();

  for (const auto& phase : plimsoll::timeline::phase_figures(timeline)) {
    std::printf("step %d %-10s start %9ld  peak %9ld  end %9ld\n", phase.key.step,
                std::string(plimsoll::timeline::name(phase.key.phase)).c_str(), phase.start,
                phase.peak, phase.end);
  }
  const auto peak = plimsoll::timeline::find_peak(timeline);
  std::printf("peak %ld B in %s\n", peak.bytes, timeline.operations[peak.operation].c_str());
}
