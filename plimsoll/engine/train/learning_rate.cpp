#include "plimsoll/engine/train/learning_rate.hpp"

#include <cmath>
#include <numbers>

#include "plimsoll/base/error.hpp"

namespace plimsoll::engine {

std::string_view name(Decay decay) {
  switch (decay) {
    case Decay::kConstant:
      return "constant";
    case Decay::kLinear:
      return "linear";
    case Decay::kCosine:
      return "cosine";
  }
  throw InternalError("unknown decay");
}

double LearningRate::at(std::int64_t step) const {
  if (step < warm_up) return peak * static_cast<double>(step + 1) / static_cast<double>(warm_up);
  const double x = static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up);
  switch (decay) {
    case Decay::kConstant:
      return peak;
    case Decay::kLinear:
      return peak * (1 - x);
    case Decay::kCosine:
      return peak * (1 + std::cos(std::numbers::pi * x)) / 2;
  }
  throw InternalError("unknown decay");
}

}  // namespace plimsoll::engine
