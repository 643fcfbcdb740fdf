#include "plimsoll/engine/dry/dry_run.hpp"

#include <stdexcept>
#include <string>

#include "plimsoll/base/error.hpp"
#include "plimsoll/engine/meter/meter.hpp"

namespace plimsoll::engine {
namespace {

using timeline::Phase;
using timeline::Tag;

[[noreturn]] void refuse(std::string what, std::string hint) {
  throw std::runtime_error(format_error({"dry_run", std::move(what), std::move(hint)}));
}

void check_on_meta(const torch::nn::Module& module) {
  const auto check = [](const char* kind, const auto& named) {
    if (named.value().is_meta()) return;
    refuse(std::string(kind) + " '" + named.key() + "' is on " + named.value().device().str() +
               ", expected meta",
           "build the module inside plimsoll::on_meta([&] { return Module(...); })");
  };
  for (const auto& named : module.named_parameters()) check("parameter", named);
  for (const auto& named : module.named_buffers()) check("buffer", named);
}

void adopt_model(Meter& meter, const torch::nn::Module& module,
                 const std::vector<at::Tensor>& inputs) {
  for (const at::Tensor& parameter : module.parameters()) meter.adopt(parameter, Tag::kParameters);
  for (const at::Tensor& buffer : module.buffers()) meter.adopt(buffer, Tag::kBuffers);
  for (const at::Tensor& input : inputs) meter.adopt(input, Tag::kInputs);
}

// Gradients of this run go with it, so that a second dry run sees the same.
class GradientRestorer {
 public:
  explicit GradientRestorer(const torch::nn::Module& module) {
    for (const at::Tensor& parameter : module.parameters()) {
      if (!parameter.grad().defined()) without_gradient_.push_back(parameter);
    }
  }
  ~GradientRestorer() {
    for (const at::Tensor& parameter : without_gradient_) parameter.mutable_grad().reset();
  }
  GradientRestorer(const GradientRestorer&) = delete;
  GradientRestorer& operator=(const GradientRestorer&) = delete;

 private:
  std::vector<at::Tensor> without_gradient_;
};

void run(Meter& meter, const DryStep& step) {
  meter.begin_phase({Phase::kForward});
  step.forward();
  meter.begin_phase({Phase::kLoss});
  const at::Tensor loss = step.loss();
  if (!loss.requires_grad()) {
    refuse("the loss needs no gradient", "is every parameter frozen, or the module in no_grad?");
  }
  meter.begin_phase({Phase::kBackward});
  loss.backward();
  meter.end_phase();
}

// libtorch's message goes on for a page.
std::string first_sentence(const std::string& text) { return text.substr(0, text.find(". ")); }

}  // namespace

timeline::Timeline record_dry_step(const torch::nn::Module& module,
                                   const std::vector<at::Tensor>& inputs, const DryStep& step,
                                   Flavour flavour) {
  check_on_meta(module);
  const GradientRestorer restorer(module);
  const MetaMode mode(flavour);
  Meter meter;
  meter.begin_phase({Phase::kModel});
  adopt_model(meter, module, inputs);
  try {
    run(meter, step);
  } catch (const c10::NotImplementedError& error) {
    refuse(first_sentence(error.what_without_backtrace()),
           "plimsoll knows no meta kernel for it; call an operation that has one");
  }
  for (const at::Tensor& parameter : module.parameters()) {
    if (parameter.grad().defined()) retag(parameter.grad(), Tag::kGradients);
  }
  return meter.finish();
}

at::Tensor to_meta(const at::Tensor& tensor) {
  if (tensor.is_meta()) return tensor;
  at::Tensor twin =
      at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
  return twin.requires_grad_(tensor.requires_grad());
}

at::Tensor sum_of_outputs(const at::Tensor& output) { return output.sum(); }

at::Tensor sum_of_outputs(const std::vector<at::Tensor>& outputs) {
  at::Tensor sum;
  for (const at::Tensor& output : outputs) {
    if (!output.defined() || !output.requires_grad()) continue;
    sum = sum.defined() ? sum + output.sum() : output.sum();
  }
  if (!sum.defined()) refuse("no output needs a gradient", "is every parameter frozen?");
  return sum;
}

}  // namespace plimsoll::engine
