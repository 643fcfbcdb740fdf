// The dtypes of each recipe, by name and with its overrides.
#include "plimsoll/plan/job.hpp"

namespace plimsoll::plan {

std::string_view name(Precision precision) {
  switch (precision) {
    case Precision::kFp64:
      return "fp64";
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
    case Precision::kAutocast:
      return "autocast";
    case Precision::kMixed:
      return "mixed";
    case Precision::kZeroPaper:
      return "zero-paper";
    case Precision::kMegatron:
      return "megatron";
  }
  return "?";
}

bool is_formula(Precision precision) {
  return precision == Precision::kZeroPaper || precision == Precision::kMegatron;
}

namespace {

// The recipe as its name says it.
Recipe named_recipe(Precision precision, bool accumulates) {
  Recipe recipe;
  switch (precision) {
    case Precision::kFp64:
      recipe.compute = recipe.state = recipe.loss = DType::kFloat64;
      break;
    case Precision::kFp32:
    case Precision::kAutocast:
      break;
    case Precision::kBf16:
      recipe.compute = recipe.state = recipe.loss = DType::kBFloat16;
      break;
    case Precision::kFp16:
      recipe.compute = recipe.state = DType::kFloat16;
      recipe.loss_scaler = true;
      break;
    case Precision::kMixed:
    case Precision::kZeroPaper:
    case Precision::kMegatron:
      recipe.compute = DType::kBFloat16;
      recipe.master = DType::kFloat32;
      if (accumulates) recipe.accumulator = DType::kFloat32;
      break;
  }
  recipe.operand = precision == Precision::kAutocast ? DType::kBFloat16 : recipe.compute;
  return recipe;
}

}  // namespace

Recipe Job::recipe() const {
  Recipe recipe = named_recipe(precision, accumulate > 1);
  if (master) recipe.master = master->dtype;
  if (grad_dtype && !sharded()) {
    recipe.accumulator = *grad_dtype == recipe.compute ? std::nullopt : grad_dtype;
  }
  // transformers casts the logits to fp32 whatever the recipe.
  if (semantics == Semantics::kHuggingFace && network::size_of(recipe.compute) < 4) {
    recipe.loss = DType::kFloat32;
  }
  if (infers()) {  // weights in the dtype that forward reads, and nothing beside them
    recipe.master = recipe.accumulator = std::nullopt;
    recipe.loss_scaler = false;
  }
  recipe.state = state_dtype.value_or(recipe.state);
  recipe.loss = loss_dtype.value_or(recipe.loss);
  return recipe;
}

}  // namespace plimsoll::plan
