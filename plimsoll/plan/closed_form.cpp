#include "plimsoll/plan/closed_form.hpp"

#include <cmath>

#include <fmt/format.h>

#include "plimsoll/network/rules/attention.hpp"
#include "plimsoll/plan/model_states.hpp"
#include "plimsoll/plan/optimizer_states.hpp"

namespace plimsoll::plan {
namespace {

// Sizes of one layer in units of D.
struct LayerSizes {
  explicit LayerSizes(const network::NetworkSpec& spec)
      : heads(share(spec, spec.heads * spec.head_dim)),
        keys(share(spec, spec.kv_heads * spec.head_dim)),
        hidden(share(spec, spec.feed_forward)) {}

  static double share(const network::NetworkSpec& spec, std::int64_t size) {
    return static_cast<double>(size) / static_cast<double>(spec.width);
  }

  double heads, keys, hidden;
};

// What one norm saves of its input: the composite RMSNorm of the CPU has it twice and normalised.
double norm_values(const network::Architecture& a, network::Backend backend) {
  const bool composite =
      !network::is_layer_norm(a.norm) && !network::facts_of(backend).rms_norm_fused;
  return composite ? 3 : 1;
}

double mlp_values(const network::Architecture& a) {
  if (a.gated) return 4;                // gate, its activation, up, and down's input
  return a.squared_activation ? 3 : 2;  // up, perhaps the square's input, and down's input
}

// Values per token of one layer, in units of D: what it saves.
double layer_values(const network::NetworkSpec& spec, std::int64_t tokens,
                    network::Backend backend) {
  const network::Architecture& a = spec.architecture;
  const LayerSizes of(spec);
  const auto norms = static_cast<double>(network::norms_per_layer(a));
  const int projections = a.qkv == network::QkvLayout::kSeparate ? 3 : 1;  // that read the input
  const int inner = a.gated && !a.fused_gate_up ? 2 : 1;
  double attention = 3 * of.heads + 2 * of.keys;  // q, k, v, output, and o's input
  const double norm = norm_values(a, backend);
  if (a.qk_norm != network::QkNorm::kNone) attention += norm * (of.heads + of.keys);
  if (a.attention_softcap > 0) {  // tanh's and the softmax's result, and the product's operand
    attention += 3 * static_cast<double>(spec.heads * tokens) / static_cast<double>(spec.width);
  }
  return norm * norms + projections + inner + attention + mlp_values(a) * of.hidden;
}

// 2V/(L D): what the logits add to c.
double logits_coefficient(const network::NetworkSpec& spec) {
  return 2 * static_cast<double>(spec.vocabulary) /
         (static_cast<double>(spec.layers) * static_cast<double>(spec.width));
}

bool is_gpt(const network::NetworkSpec& spec) {
  return spec.family == network::Family::kMiniGpt || spec.family == network::Family::kGpt2;
}

// Rows of the logsumexp that attention saves, by the kernel that the library takes.
std::int64_t saved_rows(std::int64_t tokens, network::DType dtype, network::Backend backend) {
  const network::LibraryFacts facts = network::facts_of(backend);
  const network::AttentionKernel kernel = network::rules::chosen_kernel(facts, {dtype});
  if (kernel != network::AttentionKernel::kEfficient) return tokens;
  const std::int64_t multiple = facts.efficient_row_multiple;
  return (tokens + multiple - 1) / multiple * multiple;
}

}  // namespace

std::int64_t rough_gpt_parameters(std::int64_t width, std::int64_t layers,
                                  std::int64_t vocabulary) {
  return checked_add(checked_mul(checked_mul(12, layers), checked_mul(width, width)),
                     checked_mul(vocabulary, width));
}

std::int64_t saved_bytes_per_sample(const network::NetworkSpec& spec, std::int64_t tokens,
                                    network::DType dtype, network::Backend backend) {
  const std::int64_t e = network::size_of(dtype);
  const std::int64_t td = checked_mul(tokens, spec.width);
  const std::int64_t rows = saved_rows(tokens, dtype, backend);
  const std::int64_t layer =
      checked_add(checked_mul(checked_add(checked_mul(17, td), checked_mul(4, tokens)), e),
                  checked_mul(checked_mul(4, spec.heads), rows));
  const std::int64_t head = checked_mul(checked_mul(2, checked_add(td, tokens)), e);
  const std::int64_t logits = checked_mul(checked_mul(2 * e, tokens), spec.vocabulary);
  return checked_add(checked_add(checked_mul(spec.layers, layer), head),
                     checked_add(logits, checked_mul(16, tokens)));
}

double activation_coefficient(const network::NetworkSpec& spec, std::int64_t tokens,
                              network::DType dtype, network::Backend backend) {
  const auto layers = static_cast<double>(spec.layers);
  if (is_gpt(spec)) {
    const auto k = static_cast<double>(saved_bytes_per_sample(spec, tokens, dtype, backend));
    return k / (static_cast<double>(tokens) * static_cast<double>(spec.width) * layers *
                static_cast<double>(network::size_of(dtype)));
  }
  return layer_values(spec, tokens, backend) + logits_coefficient(spec);
}

std::string activation_law(const network::NetworkSpec& spec, std::int64_t tokens,
                           network::Backend backend) {
  if (is_gpt(spec)) return "17 + 2/L + 2V/(L D) + small terms";
  return fmt::format("{:.2f} + 2V/(L D)", layer_values(spec, tokens, backend));
}

ClosedFormPosts closed_form_posts(std::int64_t parameter_count, double c, std::int64_t batch,
                                  std::int64_t tokens, std::int64_t width, std::int64_t layers,
                                  double item_size) {
  const auto psi = static_cast<double>(parameter_count);
  ClosedFormPosts posts;
  posts.parameters = item_size * psi;
  posts.gradients = item_size * psi;
  posts.optimizer = 2 * item_size * psi;
  posts.activations =
      item_size * psi + c * static_cast<double>(batch) * static_cast<double>(tokens) *
                            static_cast<double>(width) * static_cast<double>(layers) * item_size;
  return posts;
}

namespace {

// Tensors of B T D that a checkpointed layer keeps: its input, with policy "matmuls" also the results
// of its linear layers.
double kept_per_layer(const network::NetworkSpec& spec, network::Checkpoint policy) {
  if (policy == network::Checkpoint::kBlock) return 1;
  const LayerSizes of(spec);
  const double inner = spec.architecture.gated ? 2 : 1;
  return 1 + of.heads + 2 * of.keys + 1 + inner * of.hidden + 1;
}

void set_activations(ClosedForm& form, const network::NetworkSpec& spec, const Job& job,
                     std::int64_t parameter_count) {
  const network::DType dtype = job.recipe().compute;
  const auto e = static_cast<double>(network::size_of(dtype));
  const double tokens = static_cast<double>(job.batch) * static_cast<double>(job.sequence);
  const double layer = tokens * static_cast<double>(spec.width) * e;
  const double layers = layer * static_cast<double>(spec.layers);
  if (job.checkpoint == network::Checkpoint::kNone) {
    double c = activation_coefficient(spec, job.sequence, dtype, job.backend);
    std::string law = activation_law(spec, job.sequence, job.backend);
    if (job.loss_chunks > 1) {  // no logits are saved
      c -= logits_coefficient(spec);
      law += " - 2V/(L D)";
    }
    form.posts.activations = e * static_cast<double>(parameter_count) + c * layers;
    form.activations = fmt::format("e Psi + c B T D L e, c = {} = {:.2f}", law, c);
    return;
  }
  const double kept = kept_per_layer(spec, job.checkpoint);
  const auto loss_item = static_cast<double>(network::size_of(job.recipe().loss));
  const bool chunked = job.loss_chunks > 1;
  const double logits = chunked ? 0 : tokens * static_cast<double>(spec.vocabulary) * loss_item;
  form.posts.activations = kept * layers + 3 * layer + logits;
  form.activations = fmt::format("{:.2f} B T D L e + 3 B T D e", kept);
  if (!chunked) form.activations += fmt::format(" + B T V {}", loss_item);
}

// Bytes per parameter on one rank: some in full, some divided by the ranks.
struct Share {
  double full = 0;
  double divided = 0;

  double bytes(double psi, std::int32_t ranks) const { return psi * (full + divided / ranks); }
  // `psi`: the letter of the parameters.
  std::string text(std::string_view psi) const {
    if (divided == 0) return fmt::format("{} {}", full, psi);
    const std::string part = fmt::format("{} {}/R", divided, psi);
    return full == 0 ? part : fmt::format("{} {} + {}", full, psi, part);
  }
};

Share weights_of(const Job& job) {
  const auto compute = static_cast<double>(network::size_of(job.recipe().compute));
  const auto master = static_cast<double>(job.arithmetic().master);
  switch (job.stage) {
    case shard::Stage::kNothing:
      return {compute + master, 0};
    case shard::Stage::kOptimizer:
    case shard::Stage::kGradients:
      return {compute, master};
    case shard::Stage::kParameters:
      return {0, master > 0 ? master : compute};
  }
  return {};
}

// Frozen weights have no masters.
Share frozen_weights_of(const Job& job) {
  const auto compute = static_cast<double>(network::size_of(job.recipe().compute));
  if (job.stage == shard::Stage::kParameters) return {0, compute};
  return {compute, 0};
}

Share gradients_of(const Job& job) {
  const shard::Arithmetic a = job.arithmetic();
  const auto sum = static_cast<double>(a.sum);
  const auto travel =
      a.local_sums ? sum : static_cast<double>(network::size_of(job.recipe().compute));
  if (!job.sharded()) return {travel, 0};
  if (job.stage == shard::Stage::kNothing) return {sum, 0};
  if (job.stage == shard::Stage::kOptimizer) return {travel, travel < sum ? sum : 0};
  return {0, sum};
}

// A byte each, and an fp32 scale per block of both.
constexpr double k8bitStates = 2 + 2 * 4.0 / kBlock8bit;

Share states_of(const Job& job) {
  if (job.optimizer == Optimizer::kAdamW8bit) return {k8bitStates, 0};
  const double states = moments(job.optimizer) * static_cast<double>(job.arithmetic().moment);
  return job.stage == shard::Stage::kNothing ? Share{states, 0} : Share{0, states};
}

// P, G and O of a recipe that is formulas.
void set_formula_posts(ClosedForm& form, const Job& job, double psi) {
  const ModelStateRecipe& recipe = *find_model_state_recipe(name(job.precision));
  const auto stage = static_cast<int>(job.stage);
  const ModelStates states = model_states(recipe, psi, job.ranks, stage);
  form.posts.parameters = states.parameters;
  form.posts.gradients = states.gradients;
  form.posts.optimizer = states.optimizer;
  const auto text = [&](double bytes, int from) {
    return fmt::format("{} Psi{}", bytes, stage >= from ? "/R" : "");
  };
  form.parameters = text(recipe.weights, 3);
  form.gradients = text(recipe.gradients, 2);
  form.optimizer = text(recipe.optimizer, 1);
}

}  // namespace

ClosedForm closed_form_of(const network::NetworkSpec& spec, const Job& job,
                          const network::ParameterCount& parameters, const Ledger& ledger) {
  const auto psi = static_cast<double>(parameters.trainable);
  const auto frozen = static_cast<double>(parameters.frozen());
  const Share weights = weights_of(job);
  const Share gradients = gradients_of(job);
  const Share states = states_of(job);
  ClosedForm form;
  const Share still = frozen_weights_of(job);
  form.posts = {weights.bytes(psi, job.ranks) + still.bytes(frozen, job.ranks),
                gradients.bytes(psi, job.ranks), states.bytes(psi, job.ranks), 0};
  const std::string_view letter = frozen > 0 ? "Psi_trainable" : "Psi";
  form.parameters = weights.text(letter);
  if (frozen > 0) form.parameters += " + " + still.text("Psi_frozen");
  form.gradients = gradients.text(letter);
  form.optimizer = states.text(letter);
  if (job.optimizer == Optimizer::kAdafactor) form.optimizer += ": rows and columns alone";
  if (is_formula(job.precision)) set_formula_posts(form, job, psi);
  set_activations(form, spec, job, parameters.all);
  const bool whole = job.checkpoint == network::Checkpoint::kNone;
  form.compared_with = whole ? "as_saved" : "distinct";
  const LedgerLine& line = whole ? ledger.as_saved : ledger.distinct;
  if (line.bytes > 0) {
    form.error = form.posts.activations / static_cast<double>(line.bytes) - 1;
  }
  return form;
}

std::optional<std::int64_t> closed_form_largest_batch(double capacity, std::int64_t parameter_count,
                                                      double c, std::int64_t tokens,
                                                      std::int64_t width, std::int64_t layers,
                                                      bool count_A0) {
  const double fixed = (count_A0 ? 5.0 : 4.0) * 4.0 * static_cast<double>(parameter_count);
  const double per_sample = c * static_cast<double>(tokens) * static_cast<double>(width) *
                            static_cast<double>(layers) * 4.0;
  const double batch = std::floor((capacity - fixed) / per_sample);
  if (batch < 1) return std::nullopt;
  return static_cast<std::int64_t>(batch);
}

}  // namespace plimsoll::plan
