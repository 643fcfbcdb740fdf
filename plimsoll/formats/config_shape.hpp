// The sizes of a model's layers from its config and its inventory: also for models whose steps cannot
// be planned (mixtures of experts, latent attention).
//
// Widths of MLPs and experts are read off the parameters, heads and windows off the config.
#pragma once

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/inventory/inventory.hpp"
#include "plimsoll/plan/model_shape.hpp"

namespace plimsoll::formats {

// Refused: layers that are not attention and an MLP (state spaces, linear attention, encoders with
// cross attention), and attention whose matrices are not those of heads or of a latent.
Result<plan::ModelShape> shape_from_config(const ClassConfig& config, const ModelInventory& model);

}  // namespace plimsoll::formats
