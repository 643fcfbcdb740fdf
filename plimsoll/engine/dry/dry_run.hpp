// dry_run: the memory of one training step of your own module, at full size, without the memory.
//
//   auto model = engine::on_meta([&] { return Decoder(shape); });
//   auto ids = torch::zeros({8, 4096}, torch::kLong);
//   timeline::Timeline timeline = engine::dry_run(model, ids);
//   std::int64_t peak = timeline::find_peak(timeline).bytes;
//
// Runs forward, the sum of the outputs (or a loss of your own) and backward on the meta device, in
// step 0 of the timeline: phases kModel (parameters, buffers and inputs, alive before), kForward,
// kLoss, kBackward. Bytes are absolute for this module, on one rank. Gradients and the loss are
// alive at the end of kBackward. What is reproduced: dry/meta_mode.hpp.
// Not included: the optimizer (plan it, or run its step in a MetaMode under a Meter), other tensors
// of the program.
//
// The module's `.grad`s are afterwards as before, except that defined ones were added to. Errors
// are std::runtime_error: a parameter that is not on meta, an operation that has no meta kernel.
#pragma once

#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "plimsoll/engine/dry/meta_mode.hpp"
#include "plimsoll/engine/torch.hpp"
#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::engine {

// The step as dry_run sees it: forward keeps its outputs, loss uses and drops them.
struct DryStep {
  std::function<void()> forward;
  std::function<at::Tensor()> loss;  // a scalar that needs a gradient
};

// The part of dry_run that is no template. `inputs` are on meta.
timeline::Timeline record_dry_step(const torch::nn::Module& module,
                                   const std::vector<at::Tensor>& inputs, const DryStep& step,
                                   Flavour flavour);

// A meta tensor of the same form in place of one that is elsewhere.
at::Tensor to_meta(const at::Tensor& tensor);

// Sums over what a forward function returns, as far as it needs a gradient.
at::Tensor sum_of_outputs(const at::Tensor& output);
at::Tensor sum_of_outputs(const std::vector<at::Tensor>& outputs);
template <class... Tensors>
at::Tensor sum_of_outputs(const std::tuple<Tensors...>& outputs) {
  return std::apply(
      [](const auto&... tensors) { return sum_of_outputs(std::vector<at::Tensor>{tensors...}); },
      outputs);
}

namespace detail {

template <class Input>
auto meta_input(const Input& input) {
  if constexpr (std::is_convertible_v<const Input&, const at::Tensor&>) {
    return to_meta(input);
  } else {
    return input;
  }
}

template <class Module>
const torch::nn::Module& module_of(const Module& module) {
  if constexpr (std::is_base_of_v<torch::nn::Module, Module>) {
    return module;
  } else {
    return *module.ptr();
  }
}

template <class Module, class... Inputs>
auto call(Module& module, Inputs&... inputs) {
  if constexpr (std::is_base_of_v<torch::nn::Module, Module>) {
    return module.forward(inputs...);
  } else {
    return module->forward(inputs...);
  }
}

}  // namespace detail

// `module` is a torch::nn::Module with a forward function, or a holder of one. `loss` gets what
// forward returns. Tensors among `inputs` may be anywhere: meta tensors of the same form take their
// place. Other inputs are passed on.
template <class Module, class Loss, class... Inputs>
timeline::Timeline dry_run_with_loss(Flavour flavour, Module& module, Loss&& loss,
                                     const Inputs&... inputs) {
  auto on_device = std::make_tuple(detail::meta_input(inputs)...);
  using Outputs = decltype(std::apply(
      [&](auto&... input) { return detail::call(module, input...); }, on_device));
  std::vector<at::Tensor> tensors;
  const auto collect = [&](const auto& input) {
    if constexpr (std::is_same_v<std::decay_t<decltype(input)>, at::Tensor>) {
      tensors.push_back(input);
    }
  };
  std::apply([&](const auto&... input) { (collect(input), ...); }, on_device);
  std::optional<Outputs> outputs;
  DryStep step;
  step.forward = [&] {
    outputs.emplace(
        std::apply([&](auto&... input) { return detail::call(module, input...); }, on_device));
  };
  step.loss = [&] {
    at::Tensor scalar = loss(*outputs);
    outputs.reset();
    return scalar;
  };
  return record_dry_step(detail::module_of(module), tensors, step, flavour);
}

// The sum of the outputs as loss, on the CPU.
template <class Module, class... Inputs>
timeline::Timeline dry_run(Module& module, const Inputs&... inputs) {
  const auto sum = [](const auto& outputs) { return sum_of_outputs(outputs); };
  return dry_run_with_loss(Flavour::kCpu, module, sum, inputs...);
}

}  // namespace plimsoll::engine
