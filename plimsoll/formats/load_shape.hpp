// MODEL on the command line to the sizes of its layers: also for models that have no timeline yet.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/model_shape.hpp"

namespace plimsoll::formats {

struct LoadedShape {
  plan::ModelShape shape;
  std::optional<network::NetworkSpec> spec;  // none: the model cannot be planned, only counted
  std::vector<std::string> assumptions;
};

// As load_model(), or as load_counted_model() where no step can be planned. Image networks and layers
// that are no transformer's are refused.
Result<LoadedShape> load_shape(const std::string& argument);

}  // namespace plimsoll::formats
