// Formulas of model states: weights, gradients and optimizer states per rank, by recipe and ZeRO
// stage, as papers print them. No padding, no gathered units, no buffers: a plan has those.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace plimsoll::plan {

// Bytes per parameter, and which of them a stage divides by the ranks R: the optimizer's from stage
// 1, gradients from 2, weights from 3.
struct ModelStateRecipe {
  std::string_view name;
  double weights = 0;    // P
  double gradients = 0;  // G
  double optimizer = 0;  // O: master weights and moments
  std::string_view meaning;
};

// fp32, bf16, mixed, zero-paper, megatron, autocast, fp32-gradients.
std::span<const ModelStateRecipe> model_state_recipes();
const ModelStateRecipe* find_model_state_recipe(std::string_view name);

struct ModelStates {
  double parameters = 0;  // bytes per rank
  double gradients = 0;
  double optimizer = 0;
  double total() const { return parameters + gradients + optimizer; }
};
// `stage` 0 to 3.
ModelStates model_states(const ModelStateRecipe& recipe, double parameters, std::int64_t ranks,
                         int stage);

}  // namespace plimsoll::plan
