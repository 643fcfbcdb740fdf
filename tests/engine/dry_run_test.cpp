// dry_run for modules of one's own, modules built without memory, CUDA's kernels.
#include "plimsoll/engine/dry/dry_run.hpp"

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/engine/library/saved_tensor_recorder.hpp"
#include "plimsoll/meter.hpp"

#include "tests/engine/event_stream.hpp"
#include "tests/engine/modules.hpp"
#include "tests/engine/with_reference_kernels.hpp"

namespace plimsoll::engine {
namespace {

using tests::Gpt;
using tests::GptShape;
using timeline::Phase;
using timeline::PhaseFigures;
using timeline::Timeline;

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * 4096;
}

torch::nn::Sequential stack_of_70_billion() {
  using namespace torch::nn;
  Sequential stack{Embedding(128256, 8192), Conv2d(Conv2dOptions(64, 64, 3)), BatchNorm2d(64)};
  for (int layer = 0; layer < 80; ++layer) {
    stack->push_back(LayerNorm(LayerNormOptions({8192})));
    for (int projection = 0; projection < 2; ++projection) stack->push_back(Linear(8192, 8192));
    for (int projection = 0; projection < 3; ++projection) stack->push_back(Linear(8192, 28672));
  }
  stack->push_back(LSTM(512, 512));
  stack->push_back(MultiheadAttention(512, 8));
  return stack;
}

class FailingImpl : public torch::nn::Module {
 public:
  at::Tensor forward(const at::Tensor&) { throw std::runtime_error("a module failed"); }
};
TORCH_MODULE(Failing);

// Reads values, which meta tensors do not have.
class ReadingImpl : public torch::nn::Module {
 public:
  ReadingImpl() { linear_ = register_module("linear", torch::nn::Linear(3, 3)); }
  at::Tensor forward(const at::Tensor& x) { return at::poisson(linear_(x)); }

 private:
  torch::nn::Linear linear_{nullptr};
};
TORCH_MODULE(Reading);

plan::Ledger saved_with_cuda(std::int64_t batch) {
  const MetaMode mode(Flavour::kCuda);
  Gpt model(GptShape{});
  const std::vector<at::Tensor> parameters = model->parameters();
  const auto ids = torch::zeros({batch, 64}, torch::kLong);
  SavedTensorRecorder recorder(parameters);
  const SavedTensorScope scope(&recorder);
  const at::Tensor loss = tests::next_token_loss(model(ids), ids);
  return recorder.ledger();
}

}  // namespace

TEST_CASE("a module of 70 billion parameters is built without memory") {
  const std::int64_t before = resident_bytes();
  const torch::nn::Sequential stack = on_meta(stack_of_70_billion);
  const std::int64_t after = resident_bytes();
  std::int64_t parameters = 0;
  for (const at::Tensor& parameter : stack->parameters()) {
    REQUIRE(parameter.is_meta());
    parameters += parameter.numel();
  }
  for (const at::Tensor& buffer : stack->buffers()) CHECK(buffer.is_meta());
  CHECK(parameters > 68'000'000'000);
  CHECK(after - before < 64 << 20);
}

TEST_CASE("the mode ends with its scope") {
  {
    const MetaMode outer;
    const MetaMode inner(Flavour::kCuda);
    CHECK(torch::empty({2}).is_meta());
    // Named devices are kept: values stay readable.
    CHECK(torch::tensor({1.0, 2.0}).is_cpu());
  }
  CHECK(torch::empty({2}).is_cpu());
}

TEST_CASE("CUDA's kernels save what the published reference run saved") {
  for (const std::int64_t batch : {1, 2}) {
    const plan::LedgerLine saved = saved_with_cuda(batch).as_saved;
    CHECK(saved.count == 117);
    CHECK(saved.bytes == 3'667'524 + batch * 2'815'488);
  }
}

TEST_CASE("dry_run gives the phases of a measured step") {
  at::set_num_threads(1);
  const GptShape shape = tests::small_gpt();
  const auto ids = torch::zeros({2, 32}, torch::kLong);
  Gpt planned = on_meta([&] { return Gpt(shape); });
  const Timeline dry = plimsoll::dry_run(planned, ids);
  CHECK(tests::event_lines(plimsoll::dry_run(planned, ids)) == tests::event_lines(dry));

  Gpt model(shape);
  Meter meter;
  meter.begin_phase({Phase::kModel});
  for (const at::Tensor& parameter : model->parameters()) {
    meter.adopt(parameter, timeline::Tag::kParameters);
  }
  meter.adopt(ids, timeline::Tag::kInputs);
  meter.begin_phase({Phase::kForward});
  at::Tensor logits = model(ids);
  meter.begin_phase({Phase::kLoss});
  const at::Tensor loss = logits.sum();
  logits.reset();
  meter.begin_phase({Phase::kBackward});
  loss.backward();
  meter.end_phase();
  const auto measured = timeline::phase_figures(meter.finish());
  const auto figures = timeline::phase_figures(dry);
  REQUIRE(figures.size() == 4);
  for (std::size_t phase = 0; phase < figures.size(); ++phase) {
    CHECK(figures[phase].start == measured[phase].start);
    CHECK(figures[phase].peak == measured[phase].peak);
    CHECK(figures[phase].end == measured[phase].end);
  }
  const auto peak = timeline::find_peak(dry);
  CHECK(peak.alive[static_cast<std::size_t>(timeline::Tag::kInputs)] == 512);
}

TEST_CASE("dry_run explains what it cannot do") {
  torch::nn::Linear on_cpu(3, 3);
  const at::Tensor x = torch::ones({2, 3});
  const auto message = [](auto&& run) -> std::string {
    try {
      run();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message([&] { dry_run(on_cpu, x); }).find("parameter 'weight' is on cpu") !=
        std::string::npos);
  Reading reading = on_meta([] { return Reading(); });
  CHECK(message([&] { dry_run(reading, x); }).find("aten::poisson") != std::string::npos);
  Failing failing;
  CHECK(message([&] { dry_run(failing, x); }) == "a module failed");
  torch::nn::Linear frozen = on_meta([] { return torch::nn::Linear(3, 3); });
  for (at::Tensor& parameter : frozen->parameters()) parameter.requires_grad_(false);
  CHECK(message([&] { dry_run(frozen, x); }).find("needs no gradient") != std::string::npos);
}

TEST_CASE("dry_run takes an own loss, and leaves gradients as they were") {
  torch::nn::Linear linear = on_meta([] { return torch::nn::Linear(3, 5); });
  const at::Tensor x = torch::ones({2, 3}), target = torch::zeros({2}, torch::kLong);
  const auto loss = [&](const at::Tensor& logits) {
    return torch::nn::functional::cross_entropy(logits, target.to(at::kMeta));
  };
  const Timeline timeline = dry_run_with_loss(Flavour::kCpu, linear, loss, x);
  CHECK(timeline.events.size() > 10);
  CHECK_FALSE(linear->weight.grad().defined());
}

}  // namespace plimsoll::engine
