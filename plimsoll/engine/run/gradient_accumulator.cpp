#include "plimsoll/engine/run/gradient_accumulator.hpp"

#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/engine/library/gradient_hooks.hpp"

namespace plimsoll::engine {
namespace {

void accumulate(OptimizedParameter& parameter, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  at::Tensor& gradient = parameter.parameter.mutable_grad();
  if (!gradient.defined()) return;
  if (parameter.accumulator.defined()) {
    add_gradient(parameter.accumulator, gradient);
  } else {
    const TagScope tag(timeline::Tag::kGradients);
    parameter.accumulator = gradient.to(dtype);
  }
  gradient.reset();
}

}  // namespace

void accumulate_gradients(std::vector<OptimizedParameter>& parameters, at::ScalarType dtype) {
  for (OptimizedParameter& p : parameters) {
    on_gradient(p.parameter, [&p, dtype](const at::Tensor&) { accumulate(p, dtype); });
  }
}

}  // namespace plimsoll::engine
