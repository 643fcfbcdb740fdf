#include "plimsoll/plan/model_states.hpp"

#include <array>

namespace plimsoll::plan {

std::span<const ModelStateRecipe> model_state_recipes() {
  static constexpr std::array<ModelStateRecipe, 7> kRecipes = {{
      {"fp32", 4, 4, 8, "everything in fp32"},
      {"bf16", 2, 2, 4, "everything in bf16"},
      {"mixed", 6, 4, 8, "plimsoll's: fp32 masters and gradients, bf16 copies; see the stages"},
      {"zero-paper", 2, 2, 12, "the ZeRO paper's: fp16, K = 12"},
      {"fp32-gradients", 2, 6, 12, "bf16 with gradients accumulated in fp32 beside the bf16 ones"},
      {"megatron", 2, 4, 12, "bf16 weights, fp32 gradients: 18, or 6 + 12/R distributed"},
      {"autocast", 4, 4, 8, "fp32 weights; bf16 copies are activations"},
  }};
  return kRecipes;
}

const ModelStateRecipe* find_model_state_recipe(std::string_view name) {
  for (const ModelStateRecipe& recipe : model_state_recipes()) {
    if (recipe.name == name) return &recipe;
  }
  return nullptr;
}

namespace {

// plimsoll's own recipe divides masters from stage 1 on and drops the bf16 copies in stage 3; one
// rank without accumulation keeps its only bf16 gradient.
ModelStates mixed_states(double parameters, std::int64_t ranks, int stage) {
  const double r = 1.0 / static_cast<double>(ranks);
  const double copy = stage == 3 ? 0 : 2;
  const double master = stage == 0 ? 4 : 4 * r;
  const double gradient = stage == 0 ? (ranks == 1 ? 2 : 4) : 4 * r + (stage == 1 ? 2 : 0);
  const double moments = stage == 0 ? 8 : 8 * r;
  return {(copy + master) * parameters, gradient * parameters, moments * parameters};
}

}  // namespace

ModelStates model_states(const ModelStateRecipe& recipe, double parameters, std::int64_t ranks,
                         int stage) {
  if (recipe.name == "mixed") return mixed_states(parameters, ranks, stage);
  const auto share = [&](int from) {
    return stage >= from ? 1.0 / static_cast<double>(ranks) : 1.0;
  };
  return {recipe.weights * parameters * share(3), recipe.gradients * parameters * share(2),
          recipe.optimizer * parameters * share(1)};
}

}  // namespace plimsoll::plan
