#include "plimsoll/report/math_model.hpp"

#include <utility>

#include "plimsoll/network/families/families.hpp"

namespace plimsoll::report {
namespace {

constexpr std::int64_t kStatesRanks = 8;  // a host of eight cards, unless the job has more ranks

std::vector<StatesLine> states_of(const plan::ModelShape& shape, std::int64_t ranks) {
  std::vector<StatesLine> lines;
  for (const plan::ModelStateRecipe& recipe : plan::model_state_recipes()) {
    StatesLine line{std::string(recipe.name), std::string(recipe.meaning), {}};
    for (int stage = 0; stage <= 3; ++stage) {
      const auto states =
          plan::model_states(recipe, static_cast<double>(shape.parameters), ranks, stage);
      line.totals.push_back(states.total());
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<LayerCopies> activations_of(const network::NetworkSpec& spec, plan::Job job) {
  std::vector<LayerCopies> all;
  for (const auto policy :
       {network::Checkpoint::kNone, network::Checkpoint::kMatmuls, network::Checkpoint::kBlock}) {
    job.checkpoint = policy;
    LayerCopies copies;
    copies.policy = network::name(policy);
    copies.tensors = plan::layer_tensors(spec, job);
    copies.copies = plan::layer_copies(copies.tensors, spec, job);
    all.push_back(std::move(copies));
  }
  return all;
}

double recomputed_per_token(const ModelMath& math) {
  double flops = 0;
  for (const plan::CostRow& row : plan::recomputed_rows(math.rows, math.job.checkpoint)) {
    flops += static_cast<double>(row.flops.causal_exact);
  }
  return flops / (static_cast<double>(math.job.batch) * static_cast<double>(math.job.sequence));
}

std::vector<Utilisation> utilisation_of(const ModelMath& math) {
  std::vector<Utilisation> all;
  if (math.tokens_per_second == 0 || !math.job.device) return all;
  const auto peak = math.job.device->peak(plan::arithmetic_of(math.job.recipe().compute)).matmul();
  if (!peak) return all;
  const auto share = [&](double per_token) { return math.tokens_per_second * per_token / *peak; };
  for (const plan::TokenConvention& convention : math.conventions) {
    all.push_back({"MFU, " + convention.name, share(convention.flops_per_token)});
  }
  if (math.job.checkpoint != network::Checkpoint::kNone) {
    const double exact = math.conventions.back().flops_per_token;
    all.push_back(
        {"HFU, causal exact and recomputation", share(exact + recomputed_per_token(math))});
  }
  return all;
}

}  // namespace

ModelMath model_math(const formats::LoadedShape& model, const plan::Job& job,
                     double tokens_per_second) {
  ModelMath math;
  math.shape = model.shape;
  math.job = job;
  const plan::CostSizes sizes = plan::cost_sizes(job);
  math.rows = plan::training_rows(model.shape, sizes);
  math.training = plan::sum_flops(math.rows, "");
  math.rows.push_back(plan::optimizer_row(model.shape, job));
  math.conventions = plan::token_conventions(model.shape, sizes.tokens);
  math.crossover = plan::attention_crossover(model.shape);
  math.experts = plan::expert_facts(model.shape, sizes);
  if (job.device) {
    math.bound =
        plan::time_bound(math.rows, *job.device, plan::arithmetic_of(job.recipe().compute));
  }
  math.tokens_per_second = tokens_per_second;
  math.utilisation = utilisation_of(math);
  math.states_ranks = job.ranks > 1 ? job.ranks : kStatesRanks;
  math.states = states_of(model.shape, math.states_ranks);
  if (model.spec) math.activations = activations_of(*model.spec, job);
  return math;
}

}  // namespace plimsoll::report
