#include "plimsoll/plan/recipe_checks.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll::plan {
namespace {

using DTypes = std::vector<DType>;

bool among(DType dtype, const DTypes& known) {
  return std::find(known.begin(), known.end(), dtype) != known.end();
}

std::string names(const DTypes& dtypes) {
  std::vector<std::string_view> text;
  for (DType dtype : dtypes) text.push_back(network::name(dtype));
  return fmt::format("{}", fmt::join(text, " or "));
}

Result<void> expect(const char* option, DType dtype, const Job& job, const DTypes& known,
                    std::string hint = {}) {
  if (among(dtype, known)) return {};
  return fail(option,
              fmt::format("{} with precision {}, expected {}", network::name(dtype),
                          name(job.precision), names(known)),
              std::move(hint));
}

Result<void> validate_masters(const Job& job) {
  if (!job.master) return {};
  const DType compute = job.recipe().compute;
  if (!job.master->dtype) return {};
  if (network::size_of(compute) > 2) {
    return fail(
        "--master-dtype",
        fmt::format("{} with precision {}, expected none: weights are {} themselves",
                    network::name(*job.master->dtype), name(job.precision), network::name(compute)),
        "--precision mixed keeps fp32 masters of bf16 weights");
  }
  return expect("--master-dtype", *job.master->dtype, job, {DType::kFloat32});
}

Result<void> validate_gradients(const Job& job) {
  if (!job.grad_dtype) return {};
  if (job.sharded()) {
    const DType sums = job.gradient_dtype();
    return expect("--grad-dtype", *job.grad_dtype, job, {sums},
                  "sums over ranks are never rounded back");
  }
  const DType compute = job.recipe().compute;
  const bool narrow = network::size_of(compute) == 2;
  const bool own = job.optimizer_impl == OptimizerImpl::kPlimsoll;
  DTypes known{compute};
  if (narrow && own) known.push_back(DType::kFloat32);
  return expect(
      "--grad-dtype", *job.grad_dtype, job, known,
      narrow && !own ? "torch's optimizers read .grad, which has the parameters' dtype" : "");
}

Result<void> validate_state(const Job& job) {
  if (job.optimizer_impl != OptimizerImpl::kPlimsoll) return {};
  const Recipe recipe = job.recipe();
  DTypes known{DType::kFloat32, DType::kBFloat16};
  if (recipe.compute == DType::kFloat64) known = {DType::kFloat64};
  if (recipe.compute == DType::kFloat16) known = {DType::kFloat32, DType::kFloat16};
  return expect("--state-dtype", recipe.state, job, known);
}

Result<void> validate_loss(const Job& job) {
  if (!job.loss_dtype) return {};
  const DType compute = job.recipe().compute;
  DTypes known{DType::kFloat32, DType::kFloat64};
  if (network::size_of(compute) == 2) known.push_back(compute);
  return expect("--loss-dtype", *job.loss_dtype, job, known);
}

Result<void> validate_formula(const Job& job, const network::NetworkSpec& spec) {
  if (!is_formula(job.precision)) return {};
  const auto refuse = [&](const char* option, const char* what) {
    return fail(option,
                fmt::format("{} with precision {}, whose formulas know no other", what,
                            name(job.precision)),
                "--precision mixed plans what plimsoll runs");
  };
  if (job.optimizer != Optimizer::kAdamW) return refuse("--optimizer", "another than adamw");
  if (job.optimizer_impl != OptimizerImpl::kPlimsoll) {
    return refuse("--optimizer-impl", "an implementation");
  }
  if (job.master || job.grad_dtype || job.state_dtype) {
    return refuse("--precision", "an overridden dtype");
  }
  if (job.adapts()) return refuse("--freeze", "frozen parameters or adapters");
  if (spec.family == network::Family::kCnn) return refuse("--precision", "an image network");
  return {};
}

}  // namespace

Result<void> validate_recipe(const Job& job, const network::NetworkSpec& spec) {
  if (auto ok = validate_masters(job); !ok) return ok;
  if (auto ok = validate_gradients(job); !ok) return ok;
  if (auto ok = validate_state(job); !ok) return ok;
  if (auto ok = validate_loss(job); !ok) return ok;
  if (spec.family == network::Family::kCnn && job.precision == Precision::kAutocast) {
    return fail("--precision",
                "autocast of a cnn is not known, expected fp64, fp32, bf16 or mixed");
  }
  return validate_formula(job, spec);
}

std::vector<std::string> optimizer_assumptions(Optimizer optimizer) {
  if (optimizer == Optimizer::kAdafactor) {
    return {
        "optimizer adafactor: only calculated; torch.optim.Adafactor with its own defaults, "
        "without weight decay (torch/optim/_adafactor.py, and a recorded run of it)"};
  }
  if (optimizer != Optimizer::kAdamW8bit) return {};
  return {
      "optimizer adamw-8bit: only calculated; bitsandbytes' AdamW8bit with its own defaults: "
      "blocks of 256, tensors below 4,096 elements in fp32 (source: "
      "bitsandbytes/optim/optimizer.py)"};
}

std::vector<std::string> recipe_assumptions(Precision precision) {
  if (is_formula(precision)) {
    return {
        fmt::format("precision {}: P, G and O are the recipe's formulas; the peak, the phases and "
                    "the memory are those of mixed, which plimsoll runs",
                    name(precision))};
  }
  if (precision != Precision::kFp16) return {};
  return {
      "precision fp16: only calculated; kernels as those of bf16, and the two 4-byte tensors of "
      "torch.amp.GradScaler (source: torch/amp/grad_scaler.py), without its transients"};
}

Result<void> validate_runs(const Job& job, const char* command) {
  const auto refuse = [&](const char* option, std::string_view what, const char* why) {
    return fail(option, fmt::format("{} is only calculated, and {} runs: {}", what, command, why),
                "plimsoll plan shows what is calculated");
  };
  if (is_formula(job.precision)) {
    return refuse("--precision", name(job.precision), "it is formulas of P, G and O");
  }
  if (job.precision == Precision::kFp16) {
    return refuse("--precision", "fp16", "the engine has no loss scaler");
  }
  if (usual_implementation(job.optimizer) != OptimizerImpl::kPlimsoll) {
    return refuse("--optimizer", name(job.optimizer), "it is another library's, not the engine's");
  }
  return {};
}

}  // namespace plimsoll::plan
