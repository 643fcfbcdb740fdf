// Dry runs against measured ones, event by event: single operations and whole training steps.
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/engine/dry/dry_run.hpp"
#include "plimsoll/engine/dry/meta_mode.hpp"
#include "plimsoll/engine/meter/meter.hpp"

#include "tests/engine/event_stream.hpp"
#include "tests/engine/known_library.hpp"
#include "tests/engine/modules.hpp"
#include "tests/engine/operation_cases.hpp"
#include "tests/engine/with_reference_kernels.hpp"

namespace plimsoll::engine {
namespace {

using tests::Activation;
using tests::Attention;
using tests::Gpt;
using tests::GptShape;
using tests::Llama;
using tests::LlamaShape;
using tests::RmsForm;
using timeline::Phase;
using timeline::Timeline;

constexpr std::array kDtypes{at::kFloat, at::kBFloat16, at::kDouble};

enum class Where { kCpu, kMeta };

Timeline record(Where where, const std::function<void(Meter&)>& run) {
  torch::manual_seed(0);
  std::optional<MetaMode> mode;
  if (where == Where::kMeta) mode.emplace();
  Meter meter;
  run(meter);
  return meter.finish();
}

// The first run of a kind may fill caches of libtorch.
void check_same_events(const std::string& name, const std::function<void(Meter&)>& run) {
  at::set_num_threads(1);
  record(Where::kCpu, run);
  const auto measured = tests::event_lines(record(Where::kCpu, run));
  const auto dry = tests::event_lines(record(Where::kMeta, run));
  INFO(name);
  CHECK(tests::first_difference(measured, dry) == "");
  CHECK(measured.size() > 0);
}

void check_cases(const std::vector<tests::OperationCase>& cases) {
  for (const tests::OperationCase& one : cases) {
    for (const at::ScalarType dtype : kDtypes) {
      // libtorch refuses fp32 weights beside fp64 values.
      if (one.name == "layer_norm with fp32 weights" && dtype == at::kDouble) continue;
      check_same_events(one.name + " " + c10::toString(dtype), [&](Meter&) { one.run(dtype); });
    }
  }
}

// --- whole training steps ------------------------------------------------------------------------

enum class Optimizer { kAdamW, kFusedAdamW };

// The library's fused step, with its states.
class FusedAdamW {
 public:
  explicit FusedAdamW(const std::vector<at::Tensor>& parameters) : parameters_(parameters) {
    for (const at::Tensor& parameter : parameters_) {
      first_.push_back(torch::zeros_like(parameter.detach()));
      second_.push_back(torch::zeros_like(parameter.detach()));
      steps_.push_back(torch::zeros({}));
    }
  }

  void step() {
    const torch::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    for (at::Tensor& step : steps_) step.add_(1);
    at::_fused_adamw_(parameters_, gradients, first_, second_, {}, steps_, 1e-3, 0.9, 0.999, 0.01,
                      1e-8, false, false);
  }

 private:
  std::vector<at::Tensor> parameters_, first_, second_, steps_;
};

template <class Model, class Steps>
void train(Meter& meter, Model& model, Steps& optimizer, const at::Tensor& ids,
           const at::Tensor& targets) {
  for (std::int32_t step = 0; step < 2; ++step) {
    model->zero_grad();
    meter.begin_phase({Phase::kForward, step});
    const at::Tensor loss = tests::next_token_loss(model(ids), targets);
    meter.begin_phase({Phase::kBackward, step});
    loss.backward();
    meter.begin_phase({Phase::kOptimizer, step});
    optimizer.step();
    meter.end_phase();
  }
}

struct Setting {
  at::ScalarType dtype = at::kFloat;
  std::int64_t batch = 2;
  Optimizer optimizer = Optimizer::kAdamW;
};

template <class Model, class Shape>
void build_and_train(Meter& meter, const Shape& shape, const Setting& setting) {
  Model model(shape);
  model->to(setting.dtype);
  const at::DimVector size{setting.batch, shape.sequence};
  const at::Tensor ids = torch::randint(shape.vocabulary, size, torch::kLong);
  const at::Tensor targets = torch::randint(shape.vocabulary, size, torch::kLong);
  if (setting.optimizer == Optimizer::kFusedAdamW) {
    FusedAdamW optimizer(model->parameters());
    train(meter, model, optimizer, ids, targets);
  } else {
    torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));
    train(meter, model, optimizer, ids, targets);
  }
}

template <class Model, class Shape>
void check_network(const std::string& name, Shape shape) {
  for (const at::ScalarType dtype : kDtypes) {
    for (const Attention form : {Attention::kChosen, Attention::kMath}) {
      for (const Optimizer optimizer : {Optimizer::kAdamW, Optimizer::kFusedAdamW}) {
        for (const std::int64_t batch : {1, 2}) {
          shape.attention = form;
          const Setting setting{dtype, batch, optimizer};
          check_same_events(name + " " + c10::toString(dtype),
                            [&](Meter& meter) { build_and_train<Model>(meter, shape, setting); });
        }
      }
    }
  }
}

// --- modules of torch::nn ------------------------------------------------------------------------

class ResidualImpl : public torch::nn::Module {
 public:
  explicit ResidualImpl(std::int64_t channels) {
    const auto options = torch::nn::Conv2dOptions(channels, channels, 3).padding(1).bias(false);
    first_ = register_module("first", torch::nn::Conv2d(options));
    norm1_ = register_module("norm1", torch::nn::BatchNorm2d(channels));
    second_ = register_module("second", torch::nn::Conv2d(options));
    norm2_ = register_module("norm2", torch::nn::BatchNorm2d(channels));
  }
  at::Tensor forward(const at::Tensor& x) {
    return at::relu(x + norm2_(second_(at::relu(norm1_(first_(x))))));
  }

 private:
  torch::nn::Conv2d first_{nullptr}, second_{nullptr};
  torch::nn::BatchNorm2d norm1_{nullptr}, norm2_{nullptr};
};
TORCH_MODULE(Residual);

at::Tensor loss_of_images(const at::Tensor& x) {
  using namespace torch::nn;
  Sequential model(Conv2d(Conv2dOptions(3, 16, 3).padding(1)), BatchNorm2d(16), ReLU(),
                   MaxPool2d(2), Residual(16), AdaptiveAvgPool2d(1), Flatten(), Linear(16, 10));
  return functional::cross_entropy(model->forward(x), torch::zeros({x.size(0)}, torch::kLong));
}

}  // namespace

TEST_CASE("elementwise operations leave the same events" * tests::on_known_libtorch()) {
  check_cases(tests::elementwise_cases());
}
TEST_CASE("reductions leave the same events") { check_cases(tests::reduction_cases()); }
TEST_CASE("views and copies leave the same events") { check_cases(tests::shape_cases()); }
TEST_CASE("products leave the same events") { check_cases(tests::product_cases()); }
TEST_CASE("image operations leave the same events") { check_cases(tests::image_cases()); }
TEST_CASE("norms leave the same events") { check_cases(tests::norm_cases()); }
TEST_CASE("losses leave the same events") { check_cases(tests::loss_cases()); }
TEST_CASE("attention leaves the same events") { check_cases(tests::attention_cases()); }
TEST_CASE("optimizers leave the same events") { check_cases(tests::optimizer_cases()); }

TEST_CASE("operations whose events differ still run and leave nothing behind") {
  for (const tests::OperationCase& one : tests::inexact_cases()) {
    INFO(one.name);
    const std::int64_t before = total(live_bytes());
    CHECK_NOTHROW(record(Where::kMeta, [&](Meter&) { one.run(at::kFloat); }));
    CHECK(total(live_bytes()) == before);
  }
}

TEST_CASE("training steps of a GPT leave the same events") {
  check_network<Gpt>("gpt", tests::small_gpt());
  GptShape shape = tests::small_gpt();
  shape.bias = true;
  shape.activation = Activation::kSilu;
  check_network<Gpt>("gpt with biases and silu", shape);
  shape.dropout = 0.1;
  shape.activation = Activation::kRelu;
  check_network<Gpt>("gpt with biases, relu and dropout", shape);
}

TEST_CASE("training steps of a Llama leave the same events") {
  LlamaShape shape;
  check_network<Llama>("llama", shape);
  shape.norm = RmsForm::kLibtorch;
  check_network<Llama>("llama with libtorch's norm", shape);
}

TEST_CASE("training steps of torch::nn modules leave the same events") {
  using namespace torch::nn;
  const auto check = [](const char* name, const std::function<at::Tensor()>& loss) {
    check_same_events(name, [&](Meter&) { loss().backward(); });
  };
  const at::DimVector words{5, 2, 32};
  check("residual network", [] { return loss_of_images(torch::ones({4, 3, 16, 16})); });
  check("encoder layer", [&] {
    TransformerEncoderLayer layer(TransformerEncoderLayerOptions(32, 4).dim_feedforward(64));
    return layer(torch::ones(words)).sum();
  });
  check("encoder and decoder", [&] {
    Transformer model(TransformerOptions(32, 4, 1, 1).dim_feedforward(64));
    const at::Tensor x = torch::ones(words);
    return model(x, x).sum();
  });
  check("attention layer", [&] {
    MultiheadAttention layer(32, 4);
    const at::Tensor x = torch::ones(words);
    return std::get<0>(layer(x, x, x)).sum();
  });
}

TEST_CASE("gradients of gradients and kept graphs leave the same events") {
  check_same_events("gradient penalty", [](Meter&) {
    torch::nn::Linear linear(8, 8);
    const at::Tensor x = torch::ones({4, 8}, torch::requires_grad());
    const at::Tensor gradient =
        torch::autograd::grad({linear(x).tanh().sum()}, {x}, {}, true, true)[0];
    (gradient * gradient).sum().backward();
  });
  check_same_events("two backward passes", [](Meter&) {
    torch::nn::Linear linear(8, 8);
    const at::Tensor loss = linear(torch::ones({4, 8})).tanh().sum();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
  });
}

TEST_CASE("with two threads phases have the same figures") {
  GptShape shape = tests::small_gpt();
  shape.sequence = 200;
  at::set_num_threads(2);
  const auto run = [&](Meter& meter) { build_and_train<Gpt>(meter, shape, Setting{}); };
  record(Where::kCpu, run);
  const auto measured = timeline::phase_figures(record(Where::kCpu, run));
  const auto dry = timeline::phase_figures(record(Where::kMeta, run));
  at::set_num_threads(1);
  REQUIRE(measured.size() == dry.size());
  for (std::size_t phase = 0; phase < dry.size(); ++phase) {
    CHECK(measured[phase].start == dry[phase].start);
    CHECK(measured[phase].end == dry[phase].end);
    CHECK(measured[phase].peak == dry[phase].peak);
  }
}

}  // namespace plimsoll::engine
