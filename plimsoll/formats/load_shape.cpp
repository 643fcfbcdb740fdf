#include "plimsoll/formats/load_shape.hpp"

#include "plimsoll/formats/model_source.hpp"

namespace plimsoll::formats {

Result<LoadedShape> load_shape(const std::string& argument) {
  const auto spec = load_model(argument);
  if (!spec) return tl::unexpected(spec.error());
  if (spec->family == network::Family::kCnn) {
    return fail(argument, "is an image network, expected a transformer");
  }
  return LoadedShape{plan::shape_of(*spec), *spec};
}

}  // namespace plimsoll::formats
