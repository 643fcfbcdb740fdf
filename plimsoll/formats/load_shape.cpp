#include "plimsoll/formats/load_shape.hpp"

#include <utility>

#include "plimsoll/formats/config_shape.hpp"
#include "plimsoll/formats/model_source.hpp"

namespace plimsoll::formats {
namespace {

// A model whose steps cannot be planned, from its parameters and the keys of its config.
Result<LoadedShape> load_counted_shape(const std::string& argument) {
  auto counted = load_counted_model(argument);
  if (!counted) return tl::unexpected<Error>(counted.error());
  check(counted->inventory && counted->config, "a counted model without inventory");
  auto shape = shape_from_config(*counted->config, *counted->inventory);
  if (!shape) return tl::unexpected<Error>(shape.error());
  shape->title = counted->title;
  return LoadedShape{*std::move(shape), std::nullopt, std::move(counted->inventory->assumptions)};
}

}  // namespace

Result<LoadedShape> load_shape(const std::string& argument) {
  const auto spec = load_model(argument);
  if (!spec) return load_counted_shape(argument);
  if (spec->family == network::Family::kCnn) {
    return fail(argument, "is an image network, expected a transformer");
  }
  return LoadedShape{plan::shape_of(*spec), *spec, spec->assumptions};
}

}  // namespace plimsoll::formats
