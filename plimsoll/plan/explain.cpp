#include "plimsoll/plan/explain.hpp"

#include <cmath>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/plan/inference.hpp"

namespace plimsoll::plan {
namespace {

using Terms = std::vector<Term>;

constexpr const char* kSpec = "the config";

// With adapters they are all that learns, unless some are frozen, too.
std::int64_t adapter_elements(const Plan& plan) {
  std::int64_t base = 0;
  for (const network::ParameterTerm& part : network::parameter_terms(plan.spec)) {
    base = checked_add(base, part.count);
  }
  return plan.parameters.all - base;
}

void explain_parameters(const Plan& plan, Terms& terms) {
  const auto parts = network::parameter_terms(plan.spec);
  std::string formula;
  std::string numbers;
  for (const network::ParameterTerm& part : parts) {
    formula += (formula.empty() ? "" : " + ") + part.formula;
    numbers += (numbers.empty() ? "" : " + ") + grouped(part.count);
  }
  if (const std::int64_t adapters = adapter_elements(plan); adapters > 0) {
    formula += " + adapters: sum over matrices of r (in + out)";
    numbers += " + " + grouped(adapters);
  }
  terms.push_back({"parameters", formula, numbers, plan.parameters.all, "parameters", kSpec,
                   Evidence::kSource, "/model/parameters"});
  terms.push_back({"parameter_tensors", "tensors that hold them, ties once",
                   grouped(plan.parameters.tensors), plan.parameters.tensors, "tensors", kSpec,
                   Evidence::kSource, "/model/parameter_tensors"});
  for (const network::ParameterTerm& part : parts) {
    terms.push_back({"parameters." + part.name, part.formula, part.substituted, part.count,
                     "parameters", kSpec, Evidence::kSource, ""});
  }
}

void explain_pass(const char* pass, const network::FlopCount& flops, Terms& terms) {
  const std::string base = fmt::format("flops.{}", pass);
  const std::string path = fmt::format("/flops/{}/", pass);
  const std::string other =
      flops.convolution > 0 ? fmt::format(" + {}", grouped(flops.convolution)) : "";
  const std::string letters = flops.convolution > 0 ? " + convolutions" : "";
  const auto add = [&](const char* name, const std::string& attention, std::int64_t part,
                       std::int64_t total) {
    terms.push_back({base + "." + name, "products with weights" + letters + " + " + attention,
                     grouped(flops.matmul) + other + " + " + grouped(part), total, "FLOPs",
                     "2 FLOPs per multiplication and addition of each product that runs",
                     Evidence::kSource, path + name});
  };
  add("full", "the whole square of attention", flops.attention_full, flops.total_full());
  add("causal_half", "half of attention's square", flops.attention_full / 2, flops.total_half());
  add("causal_exact", "the pairs that causality leaves", flops.attention_exact,
      flops.total_exact());
}

void explain_closed_form(const Plan& plan, Terms& terms) {
  if (!plan.closed_form) return;
  const ClosedForm& form = *plan.closed_form;
  const auto add = [&](const char* letter, const std::string& formula, double bytes) {
    terms.push_back({fmt::format("closed_form.{}", letter), formula,
                     fmt::format("Psi = {}, B = {}, T = {}, D = {}, L = {}, e = {}",
                                 grouped(plan.parameters.all), plan.job.batch, plan.job.sequence,
                                 plan.spec.width, plan.spec.layers,
                                 network::size_of(plan.job.recipe().compute)),
                     static_cast<std::int64_t>(std::llround(bytes)), "bytes",
                     "what people compute on paper: approximate", Evidence::kAssumed,
                     fmt::format("/closed_form/posts/{}", letter)});
  };
  add("P", form.parameters, form.posts.parameters);
  add("G", form.gradients, form.posts.gradients);
  add("O", form.optimizer, form.posts.optimizer);
  add("A", form.activations, form.posts.activations);
  terms.push_back({"closed_form.error", "closed form's A / ledger's " + form.compared_with + " - 1",
                   fmt::format("{:.0f} / ledger - 1", form.posts.activations), form.error, "1",
                   "the ledger of this plan", Evidence::kSource,
                   "/closed_form/error_against_ledger"});
}

void explain_cache(const Plan& plan, Terms& terms) {
  if (plan.spec.family == network::Family::kCnn) return;
  InferenceJob job;
  job.batch = plan.job.batch;
  job.context = plan.job.sequence;
  job.kv_item = network::size_of(plan.job.cache_dtype());
  const ModelShape shape = shape_of(plan.spec);
  const KvCache cache = kv_cache(shape, job);
  std::string numbers;
  for (std::size_t i = 0; i < cache.lines.size(); ++i) {
    numbers += fmt::format("{}{} layers x {} bytes", i == 0 ? "" : " + ", cache.lines[i].layers,
                           cache.lines[i].bytes_per_token);
  }
  terms.push_back({"kv_cache.per_token",
                   "sum over layers of e K (H key + H value), latent ones e "
                   "(rank + rotary)",
                   numbers, cache.bytes_per_token, "bytes", kSpec, Evidence::kSource, ""});
  if (plan.inference) return;  // posts.kv_cache says it
  terms.push_back({"kv_cache.total", "B x sum over layers of min(T, window) x bytes per token",
                   fmt::format("{} x {}", job.batch, grouped(cache.bytes_per_row)), cache.total,
                   "bytes", kSpec, Evidence::kSource, ""});
}

void explain_time(const Plan& plan, Terms& terms) {
  if (!plan.time) return;
  terms.push_back({"time.bound_seconds",
                   "sum over operations of max(FLOPs / peak, bytes / bandwidth)",
                   fmt::format("bound by compute {:.6g} s + by memory {:.6g} s",
                               plan.time->compute_seconds, plan.time->memory_seconds),
                   plan.time->seconds, "seconds", "theoretical peaks of the device table",
                   Evidence::kAssumed, "/time/bound_seconds"});
}

std::int64_t all_passes(const PassFlops& flops) {
  network::FlopCount total = flops.forward;
  total += flops.backward;
  total += flops.recompute;
  return total.total_full();
}

void explain_semantics(const Plan& plan, Terms& terms) {
  if (!plan.hugging_face.figures) return;
  const SemanticsFigures& hf = *plan.hugging_face.figures;
  const auto add = [&](const char* name, const char* formula, std::int64_t own, std::int64_t other,
                       const char* unit) {
    const std::string base = fmt::format("semantics_hf.{}", name);
    const std::string path = fmt::format("/semantics_hf/{}/", name);
    const char* source = "a walk of the same job in transformers' operations";
    terms.push_back({base, formula, "--semantics hf, all else as here", other, unit, source,
                     Evidence::kSource, path + "value"});
    terms.push_back({base + ".difference", "semantics hf - this plan",
                     fmt::format("{} - {}", grouped(other), grouped(own)), other - own, unit,
                     source, Evidence::kSource, path + "difference"});
  };
  add("peak", "the steady step's peak", plan.steady.peak.bytes, hf.peak, "bytes");
  add("A", "every storage that forward saved, once", plan.posts.activations, hf.activations,
      "bytes");
  add("flops", "all passes of one micro-batch, attention in full", all_passes(plan.flops), hf.flops,
      "FLOPs");
}

}  // namespace

void explain_cost(const Plan& plan, Terms& terms) {
  explain_pass("forward", plan.flops.forward, terms);
  explain_pass("backward", plan.flops.backward, terms);
  explain_pass("recompute", plan.flops.recompute, terms);
  if (plan.spec.family != network::Family::kCnn && !plan.inference) {
    terms.push_back({"flops.rule_6nt", "6 Psi B T",
                     fmt::format("6 x {} x {} x {}", grouped(plan.parameters.all), plan.job.batch,
                                 plan.job.sequence),
                     plan.rule_6nt, "FLOPs", "2 forward and 4 backward per parameter and token",
                     Evidence::kSource, "/flops/rule_6nt"});
  }
  explain_semantics(plan, terms);
  explain_cache(plan, terms);
  explain_time(plan, terms);
}

std::vector<Term> explain_terms(const Plan& plan) {
  Terms terms;
  explain_parameters(plan, terms);
  explain_memory(plan, terms);
  explain_closed_form(plan, terms);
  explain_cost(plan, terms);
  explain_logits(plan, terms);
  explain_traffic(plan, terms);
  explain_fit(plan, terms);
  return terms;
}

}  // namespace plimsoll::plan
