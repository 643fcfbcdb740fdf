#include "plimsoll/plan/state_formula.hpp"

namespace plimsoll::plan {

std::optional<StateRecipe> state_recipe(std::string_view name) {
  static constexpr StateRecipe kRecipes[] = {
      {"fp32", 4, 4, 8}, {"bf16", 2, 2, 4}, {"zero-paper", 2, 2, 12}, {"megatron", 2, 4, 12}};
  for (const StateRecipe& recipe : kRecipes) {
    if (recipe.name == name) return recipe;
  }
  return std::nullopt;
}

StateBytes state_bytes(const StateRecipe& recipe, shard::Stage stage, double parameters,
                       std::int32_t ranks) {
  const auto share = [&](double bytes, shard::Stage from) {
    return bytes * parameters / (stage >= from ? ranks : 1);
  };
  return {share(recipe.weights, shard::Stage::kParameters),
          share(recipe.gradients, shard::Stage::kGradients),
          share(recipe.optimizer, shard::Stage::kOptimizer)};
}

}  // namespace plimsoll::plan
