// Measured steps against the byte tables of libtorch 2.13, and the meter's behaviour at its edges.
#include "plimsoll/engine/meter/meter.hpp"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/engine/library/saved_tensor_recorder.hpp"
#include "plimsoll/engine/library/version.hpp"

#include "tests/engine/event_stream.hpp"
#include "tests/engine/modules.hpp"
#include "tests/engine/with_reference_kernels.hpp"

namespace plimsoll::engine {
namespace {

using tests::Gpt;
using tests::GptShape;
using timeline::EventKind;
using timeline::Phase;
using timeline::PhaseFigures;
using timeline::Tag;
using timeline::Timeline;

struct StepFigures {
  PhaseFigures zero_grad, forward, loss, backward, optimizer;
};

// Three steps of the MiniGPT with AdamW, absolute bytes.
std::vector<StepFigures> train_measured(const GptShape& shape, std::int64_t batch,
                                        at::ScalarType dtype) {
  at::set_num_threads(1);
  Meter meter;
  Gpt model(shape);
  model->to(dtype);
  const auto ids = torch::randint(shape.vocabulary, {batch, shape.sequence}, torch::kLong);
  const auto targets = torch::randint(shape.vocabulary, {batch, shape.sequence}, torch::kLong);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));
  for (std::int32_t step = 0; step < 3; ++step) {
    meter.begin_phase({Phase::kZeroGrad, step});
    optimizer.zero_grad();
    meter.begin_phase({Phase::kForward, step});
    at::Tensor logits = model(ids);
    meter.begin_phase({Phase::kLoss, step});
    const at::Tensor loss = tests::next_token_loss(logits, targets);
    meter.end_phase();
    logits.reset();
    meter.begin_phase({Phase::kBackward, step});
    loss.backward();
    meter.begin_phase({Phase::kOptimizer, step});
    optimizer.step();
    meter.end_phase();
  }
  const std::vector<PhaseFigures> phases = timeline::phase_figures(meter.finish());
  REQUIRE(phases.size() == 15);
  std::vector<StepFigures> steps;
  for (std::size_t first = 0; first < phases.size(); first += 5) {
    steps.push_back({phases[first], phases[first + 1], phases[first + 2], phases[first + 3],
                     phases[first + 4]});
  }
  return steps;
}

void check_figures(const PhaseFigures& figures, std::int64_t start, std::int64_t end,
                   std::int64_t peak) {
  CHECK(figures.start == start);
  CHECK(figures.end == end);
  CHECK(figures.peak == peak);
}

std::int64_t sum_of_allocations(const Timeline& timeline) {
  std::int64_t bytes = 0;
  for (const auto& event : timeline.events) {
    if (event.kind == EventKind::kAllocate) bytes += event.bytes;
  }
  return bytes;
}

plan::Ledger saved_by_gpt(at::ScalarType dtype, std::int64_t batch) {
  GptShape shape;
  Gpt model(shape);
  model->to(dtype);
  const std::vector<at::Tensor> parameters = model->parameters();
  const auto ids = torch::zeros({batch, shape.sequence}, torch::kLong);
  const auto targets = torch::zeros_like(ids);
  SavedTensorRecorder recorder(parameters);
  const SavedTensorScope scope(&recorder);
  const at::Tensor loss = tests::next_token_loss(model(ids), targets);
  return recorder.ledger();
}

void check_line(const plan::LedgerLine& line, std::int64_t count, std::int64_t bytes) {
  CHECK(line.count == count);
  CHECK(line.bytes == bytes);
}

// A Sink that gives up after some events.
class FailingSink final : public timeline::Sink {
 public:
  explicit FailingSink(int events) : left_(events) {}
  void begin_phase(timeline::PhaseKey) override {}
  void end_phase() override {}
  void allocate(timeline::BlockId, std::int64_t, Tag, timeline::OperationId) override { count(); }
  void release(timeline::BlockId, std::int64_t, Tag, timeline::OperationId) override { count(); }
  void retag(timeline::BlockId, std::int64_t, Tag, Tag) override {}

 private:
  void count() {
    if (left_-- == 0) throw std::runtime_error("the disk is full");
  }
  int left_;
};

}  // namespace

TEST_CASE("three fp32 steps of the MiniGPT match the reference table") {
  const std::vector<StepFigures> steps = train_measured({}, 4, torch::kFloat);
  check_figures(steps[2].zero_grad, 14'802'944, 11'103'232, 14'802'944);
  check_figures(steps[2].forward, 11'103'232, 20'813'312, 20'813'312);
  check_figures(steps[2].loss, 20'813'312, 21'837'320, 21'837'320);
  check_figures(steps[2].backward, 20'813'320, 14'802'948, 22'861'320);
  check_figures(steps[2].optimizer, 14'802'948, 14'802'948, 15'826'960);
  CHECK(steps[0].zero_grad.start == 3'703'808);
  CHECK(steps[0].backward.peak == 15'461'896);
  CHECK(steps[0].optimizer.peak == 15'325'200);
}

TEST_CASE("steps of a MiniGPT with odd sizes match the reference table") {
  GptShape shape{.width = 96, .vocabulary = 997, .sequence = 50};
  SUBCASE("fp32") {
    const std::vector<StepFigures> steps = train_measured(shape, 2, torch::kFloat);
    check_figures(steps[2].backward, 9'484'104, 8'715'332, 10'281'704);
    CHECK(steps[2].optimizer.peak == 9'481'040);
    CHECK(steps[0].backward.peak == 5'924'840);
    CHECK(steps[0].optimizer.peak == 9'008'720);
  }
  SUBCASE("bf16") {
    const std::vector<StepFigures> steps = train_measured(shape, 1, torch::kBFloat16);
    check_figures(steps[2].backward, 4'007'152, 4'357'666, 4'740'916);
    CHECK(steps[2].optimizer.peak == 4'740'524);
    CHECK(steps[0].backward.peak == 2'562'484);
    CHECK(steps[0].optimizer.peak == 4'504'364);
  }
}

TEST_CASE("saved tensors of the MiniGPT match the reference counts") {
  constexpr std::int64_t per_sequence = 2'815'488;
  for (const std::int64_t batch : {1, 3}) {
    const plan::Ledger saved = saved_by_gpt(torch::kFloat, batch);
    check_line(saved.as_saved, 109, 3'667'460 + batch * per_sequence);
    check_line(saved.without_parameters, 74, 516 + batch * per_sequence);
    check_line(saved.distinct, 61, 516 + batch * 2'428'416);
  }
  check_line(saved_by_gpt(torch::kBFloat16, 1).as_saved, 109, 1'833'986 + 1'410'304);
}

TEST_CASE("hooks keep autograd's check for edits in place") {
  SavedTensorRecorder recorder;
  const at::Tensor x = torch::ones({2, 3}, torch::requires_grad());
  at::Tensor y;
  at::Tensor loss;
  {
    const SavedTensorScope scope(&recorder);
    y = x.exp();
    loss = (y * y).sum();
  }
  REQUIRE(recorder.tensors().size() == 3);
  CHECK(recorder.tensors()[0].operation == "aten::exp");
  CHECK(recorder.tensors()[0].bytes == 24);
  SUBCASE("untouched") {
    loss.backward();
    CHECK(x.grad().allclose(2 * y * y));
  }
  SUBCASE("edited") {
    {
      const torch::NoGradGuard no_grad;
      y.add_(1);
    }
    try {
      loss.backward();
      FAIL("an edit in place went unnoticed");
    } catch (const c10::Error& error) {
      const std::string text = error.what();
      CHECK(text.find("modified by an inplace operation: [CPUFloatType [2, 3]]") !=
            std::string::npos);
      CHECK(text.find("saved by aten::mul, is at version 1; expected version 0") !=
            std::string::npos);
    }
  }
}

TEST_CASE("hooks do not keep a graph alive") {
  const std::int64_t before = total(live_bytes());
  {
    SavedTensorRecorder recorder;
    const SavedTensorScope scope(&recorder);
    // exp saves its own result.
    const at::Tensor y = torch::ones({100}, torch::requires_grad()).exp();
  }
  CHECK(total(live_bytes()) == before);
}

TEST_CASE("an inner scope without a handler saves as usual") {
  SavedTensorRecorder recorder;
  const SavedTensorScope scope(&recorder);
  const at::Tensor x = torch::ones({4}, torch::requires_grad());
  {
    const SavedTensorScope none(nullptr);
    const at::Tensor y = x.exp();
  }
  CHECK(recorder.tensors().empty());
  const at::Tensor z = x.exp();
  CHECK(recorder.tensors().size() == 1);
}

TEST_CASE("events carry bytes, blocks, tags and names") {
  Meter meter;
  {
    const TagScope inputs(Tag::kInputs);
    const at::Tensor x = torch::ones({10});
    CHECK(retag(x, Tag::kBuffers));
    meter.operation("mine");
    const at::Tensor y = torch::ones({3}, torch::kDouble);
    meter.operation("");
  }
  const Timeline timeline = meter.finish();
  REQUIRE(timeline.events.size() == 5);
  const auto& [first, retagged, second, second_gone, first_gone] =
      std::tie(timeline.events[0], timeline.events[1], timeline.events[2], timeline.events[3],
               timeline.events[4]);
  CHECK(first.bytes == 40);
  CHECK(first.tag == Tag::kInputs);
  CHECK(timeline.operations[first.operation] == "aten::ones");
  CHECK(retagged.kind == EventKind::kRetag);
  CHECK(retagged.to == Tag::kBuffers);
  CHECK(timeline.operations[second.operation] == "mine");
  CHECK(second.bytes == 24);
  CHECK(second_gone.block == second.block);
  CHECK(first_gone.tag == Tag::kBuffers);
  CHECK(timeline.operations[0].empty());
}

TEST_CASE("names inside backward are those of the nodes") {
  const at::Tensor x = torch::ones({5}, torch::requires_grad());
  const at::Tensor loss = x.exp().sum();
  Meter meter;
  loss.backward();
  const Timeline timeline = meter.finish();
  const auto& names = timeline.operations;
  CHECK(std::find(names.begin(), names.end(), "ExpBackward0") != names.end());
}

TEST_CASE("an empty recording is empty") {
  Meter meter;
  torch::nn::Sequential nothing;
  at::Tensor empty = torch::empty({0});
  const Timeline timeline = meter.finish();
  CHECK(timeline.events.empty());
  CHECK(timeline.operations.size() == 1);
  CHECK_THROWS_AS(meter.finish(), std::logic_error);
}

TEST_CASE("tensors and meters may outlive each other") {
  at::Tensor older = torch::ones({100});
  auto meter = std::make_unique<Meter>();
  const std::int64_t start = meter->start_bytes();
  CHECK(start >= 400);
  at::Tensor newer = torch::ones({7});
  older.reset();
  CHECK(meter->current() == start - 400 + 28);
  const Timeline timeline = meter->finish();
  meter.reset();
  newer.reset();
  REQUIRE(timeline.events.size() == 2);
  CHECK(timeline.events[1].kind == EventKind::kRelease);
  CHECK(timeline.events[1].block != timeline.events[0].block);
  timeline::PeakSink sink;
  timeline::replay(timeline, sink);
  CHECK(sink.current() == 28 - 400);
}

TEST_CASE("adopted blocks count as allocations") {
  const at::Tensor weight = torch::ones({10}), outside = torch::from_blob(nullptr, {0});
  Meter meter;
  const std::int64_t start = meter.start_bytes();
  meter.adopt(weight, Tag::kParameters);
  meter.adopt(weight.view({2, 5}), Tag::kParameters);
  meter.adopt(outside, Tag::kParameters);
  meter.adopt(at::Tensor(), Tag::kParameters);
  CHECK(meter.start_bytes() == start - 40);
  timeline::PeakSink sink;
  timeline::replay(meter.finish(), sink);
  CHECK(sink.alive()[static_cast<std::size_t>(Tag::kParameters)] == 40);
  CHECK(sink.current() == 40);
}

TEST_CASE("meters nest and end in any order") {
  auto outer = std::make_unique<Meter>();
  const at::Tensor a = torch::ones({1});
  auto inner = std::make_unique<Meter>();
  const at::Tensor b = torch::ones({2});
  CHECK(outer->start_bytes() + 4 == inner->start_bytes());
  const Timeline of_outer = outer->finish();
  const at::Tensor c = torch::ones({3});
  outer.reset();
  CHECK(sum_of_allocations(of_outer) == 12);
  CHECK(sum_of_allocations(inner->finish()) == 20);
}

TEST_CASE("phases end with the scope, also by an exception") {
  Meter meter;
  const auto failing_forward = [&] {
    const PhaseScope phase(meter, {Phase::kForward});
    const at::Tensor x = torch::ones({8});
    throw std::runtime_error("a module failed");
  };
  CHECK_THROWS_AS(failing_forward(), std::runtime_error);
  meter.begin_phase({Phase::kBackward});
  const at::Tensor y = torch::ones({2});
  const std::vector<PhaseFigures> phases = timeline::phase_figures(meter.finish());
  REQUIRE(phases.size() == 2);
  check_figures(phases[0], 0, 0, 32);
  check_figures(phases[1], 0, 8, 8);
}

TEST_CASE("allocations of other threads are included") {
  Meter meter;
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([] {
      for (int round = 0; round < 100; ++round) {
        const at::Tensor x = torch::empty({25});
        const Meter own;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Timeline timeline = meter.finish();
  CHECK(sum_of_allocations(timeline) == 4 * 100 * 100);
  timeline::PeakSink sink;
  timeline::replay(timeline, sink);
  CHECK(sink.current() == 0);
}

TEST_CASE("a sink that throws stops its meter and no other") {
  FailingSink sink(1);
  Meter failing(sink);
  Meter healthy;
  for (int index = 0; index < 3; ++index) {
    const at::Tensor x = torch::ones({4});
  }
  CHECK_THROWS_WITH(failing.finish(), "the disk is full");
  CHECK(sum_of_allocations(healthy.finish()) == 48);
}

TEST_CASE("steps leave nothing behind") {
  const std::int64_t before = total(live_bytes());
  train_measured({.width = 32, .layers = 1, .vocabulary = 11, .sequence = 8}, 1, torch::kFloat);
  CHECK(total(live_bytes()) == before);
}

TEST_CASE("the library tells its version") {
  CHECK(libtorch_version().starts_with(std::to_string(TORCH_VERSION_MAJOR) + "."));
}

}  // namespace plimsoll::engine
