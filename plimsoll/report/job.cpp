#include "plimsoll/report/job.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"

namespace plimsoll::report {
namespace {

using network::Family;
using network::NetworkSpec;
using plan::Job;

constexpr std::string_view kNotGiven = ": not given";

bool is_image(const NetworkSpec& spec) { return spec.family == Family::kCnn; }

std::string whose_run(const Job& job) {
  const bool own = job.semantics == network::Semantics::kPlimsoll;
  std::string threads;
  if (job.backend == network::Backend::kCpu) {
    threads = fmt::format(", {} thread{}", job.threads, job.threads == 1 ? "" : "s");
  }
  const char* run = job.mode == plan::Mode::kPrefill  ? "One prefill pass on one rank"
                    : job.mode == plan::Mode::kDecode ? "One decode step on one rank"
                                                      : "One training step per rank";
  return fmt::format("{}, in {} operations on {}{}", run, own ? "plimsoll's" : "transformers'",
                     job.facts().library, threads);
}

std::string dtype_text(const Job& job) {
  const plan::Recipe recipe = job.recipe();
  std::string text(plan::name(job.precision));
  if (job.master) {
    text += recipe.master ? fmt::format(", masters {}", network::name(*recipe.master))
                          : std::string(", no masters");
  }
  if (job.grad_dtype) text += fmt::format(", gradients {}", network::name(job.gradient_dtype()));
  if (job.state_dtype) text += fmt::format(", states {}", network::name(recipe.state));
  if (job.loss_dtype) text += fmt::format(", loss {}", network::name(recipe.loss));
  return text;
}

std::vector<std::string_view> target_names(const network::Lora& lora) {
  std::vector<std::string_view> names;
  for (network::Matrix target : lora.targets) names.push_back(network::name(target));
  return names;
}

std::string lora_text(const network::Lora& lora) {
  return fmt::format("LoRA of rank {} on {}", lora.rank, fmt::join(target_names(lora), ", "));
}

std::vector<std::string> freeze_texts(const Job& job) {
  std::vector<std::string> texts;
  for (const network::FreezeRule& rule : job.freeze) texts.push_back(visible(rule.text));
  return texts;
}

Json lora_json(const Job& job) {
  if (!job.lora) return nullptr;
  return {{"rank", job.lora->rank},
          {"alpha", job.lora->scale * static_cast<double>(job.lora->rank)},
          {"targets", target_names(*job.lora)}};
}

Json freeze_json(const Job& job) {
  Json rules = Json::array();
  for (const network::FreezeRule& rule : job.freeze) rules.push_back(rule.text);
  return rules;
}

// Tokens per row that a pass reads.
std::int64_t tokens_of(const Job& job) {
  return job.mode == plan::Mode::kDecode ? 1 : job.sequence;
}

std::string attention_text(const NetworkSpec& spec, const Job& job) {
  return fmt::format(", attention {}", network::name(job.kernel(spec.heads != spec.kv_heads)));
}

std::string inference_settings(const NetworkSpec& spec, const Job& job) {
  const bool decodes = job.mode == plan::Mode::kDecode;
  return fmt::format("batch {} x {} token{}, {}{}, cache of {} tokens in {}", job.batch,
                     tokens_of(job), decodes ? "" : "s", plan::name(job.precision),
                     attention_text(spec, job), job.sequence, network::name(job.cache_dtype()));
}

std::string settings(const NetworkSpec& spec, const Job& job) {
  if (job.infers()) return inference_settings(spec, job);
  std::string text = is_image(spec) ? fmt::format("batch {}", job.batch)
                                    : fmt::format("batch {} x {} tokens", job.batch, job.sequence);
  if (job.accumulate > 1) text += fmt::format(" x {} micro-batches", job.accumulate);
  text += fmt::format(", {}, {}", dtype_text(job), plan::name(job.optimizer));
  if (job.optimizer_impl != plan::OptimizerImpl::kPlimsoll) {
    text += fmt::format(" of {}", plan::name(job.optimizer_impl));
  }
  if (!is_image(spec)) text += attention_text(spec, job);
  if (job.checkpoint != network::Checkpoint::kNone) {
    text += fmt::format(", checkpoint {}", network::name(job.checkpoint));
  }
  if (job.dropout > 0) text += fmt::format(", dropout {}", job.dropout);
  if (job.hold_logits) text += ", logits held";
  if (job.loss_chunks > 1) text += fmt::format(", loss in {} chunks", job.loss_chunks);
  if (job.lora) text += ", " + lora_text(*job.lora);
  if (!job.freeze.empty()) text += fmt::format(", frozen {}", fmt::join(freeze_texts(job), ", "));
  if (job.shared_targets) text += ", targets are the inputs";
  if (job.sharded()) {
    text += fmt::format(", {} rank{}, stage {}", job.ranks, job.ranks == 1 ? "" : "s",
                        static_cast<int>(job.stage));
  }
  if (job.sharded() && job.accumulate > 1 && !job.reduce_each) text += ", reduced once a step";
  if (job.snapshot) text += ", a snapshot held";
  return text;
}

std::string device_line(const Job& job, const TextStyle& style) {
  if (!job.device) return "";
  const auto budget = hardware::memory_budget(*job.device, job.reserve);
  const std::string text = fmt::format(
      "device {} ({}): {} usable, {} of it kept free", visible(job.device->name), job.device->title,
      human(Bytes{budget.usable}), human(Bytes{budget.reserve.value.value_or(0)}));
  return wrapped(text, 0, 2, style.width) + "\n";
}

Json dtype_or_null(const std::optional<network::DType>& dtype) {
  return dtype ? Json(network::name(*dtype)) : Json(nullptr);
}

void add_image_sizes(Json& model, const NetworkSpec& spec) {
  model["channels"] = spec.channels;
  model["image"] = spec.image;
  model["classes"] = spec.classes;
  model["batch_norm"] = spec.batch_norm;
}

void add_transformer_sizes(Json& model, const NetworkSpec& spec) {
  model["width"] = spec.width;
  model["layers"] = spec.layers;
  model["heads"] = spec.heads;
  model["kv_heads"] = spec.kv_heads;
  model["head_dim"] = spec.head_dim;
  model["feed_forward"] = spec.feed_forward;
  model["vocabulary"] = spec.vocabulary;
  model["positions"] = spec.positions;
  model["tied_head"] = spec.tied_head;
}

void add_precision(Json& json, const Job& job) {
  const plan::Recipe recipe = job.recipe();
  json["precision"] = plan::name(job.precision);
  json["compute_dtype"] = network::name(recipe.compute);
  json["master_dtype"] = dtype_or_null(recipe.master);
  json["grad_dtype"] = network::name(job.gradient_dtype());
  json["state_dtype"] = network::name(recipe.state);
  json["loss_dtype"] = network::name(recipe.loss);
}

}  // namespace

std::string model_line(const NetworkSpec& spec, const network::ParameterCount& parameters,
                       const TextStyle& style) {
  std::string text = fmt::format("{}: {} parameters ({}) in {} tensors\n",
                                 bold(visible(spec.title), style), grouped(parameters.all),
                                 human_count(parameters.all), grouped(parameters.tensors));
  if (parameters.frozen() == 0) return text;
  return text + fmt::format("  of them {} in {} tensors learn ({:.2f} %), {} are frozen\n",
                            grouped(parameters.trainable), grouped(parameters.trainable_tensors),
                            100 * static_cast<double>(parameters.trainable) /
                                static_cast<double>(parameters.all),
                            grouped(parameters.frozen()));
}

std::string job_lines(const NetworkSpec& spec, const Job& job, const TextStyle& style) {
  return wrapped(whose_run(job), 0, 2, style.width) + "\n" +
         wrapped(settings(spec, job), 0, 2, style.width) + "\n" + device_line(job, style);
}

Section assumptions_section(const NetworkSpec& spec, const Job& job) {
  std::vector<std::string> chosen;
  std::vector<std::string> items;
  for (const std::string& line : job.assumptions) {
    if (line.ends_with(kNotGiven)) {
      chosen.push_back(line.substr(0, line.size() - kNotGiven.size()));
    } else {
      items.push_back(line);
    }
  }
  for (const std::string& line : spec.assumptions) items.push_back(visible(line));
  if (!chosen.empty()) items.push_back(fmt::format("not given: {}", fmt::join(chosen, ", ")));
  if (items.empty()) return {};
  return {"Assumptions", "", "", std::nullopt, std::move(items)};
}

Json model_json(const NetworkSpec& spec, const network::ParameterCount& parameters) {
  Json model;
  model["title"] = spec.title;
  model["family"] = network::name(spec.family);
  model["model_type"] = spec.model_type;
  model["parameters"] = parameters.all;
  model["parameter_tensors"] = parameters.tensors;
  model["trainable_parameters"] = parameters.trainable;
  model["trainable_tensors"] = parameters.trainable_tensors;
  is_image(spec) ? add_image_sizes(model, spec) : add_transformer_sizes(model, spec);
  model["assumptions"] = spec.assumptions;
  return model;
}

Json job_json(const NetworkSpec& spec, const Job& job) {
  Json json;
  json["mode"] = network::name(job.mode);
  if (job.infers()) {
    json["context"] = job.sequence;
    json["kv_dtype"] = network::name(job.cache_dtype());
  }
  json["batch"] = job.batch;
  json["seq"] = is_image(spec) ? Json(nullptr) : Json(tokens_of(job));
  json["accumulate"] = job.accumulate;
  add_precision(json, job);
  json["optimizer"] = plan::name(job.optimizer);
  json["optimizer_impl"] = plan::name(job.optimizer_impl);
  json["attention"] =
      is_image(spec) ? Json(nullptr) : Json(network::name(job.kernel(spec.heads != spec.kv_heads)));
  json["checkpoint"] = network::name(job.checkpoint);
  json["dropout"] = job.dropout;
  json["loss_chunks"] = job.loss_chunks;
  json["lora"] = lora_json(job);
  json["freeze"] = freeze_json(job);
  json["ranks"] = job.ranks;
  json["zero"] = static_cast<int>(job.stage);
  json["prefetch"] = job.prefetch;
  json["reshard_root"] = job.reshard_root;
  json["reduce_each"] = job.reduce_each;
  json["snapshot"] = job.snapshot;
  json["semantics"] = network::name(job.semantics);
  json["backend"] = network::name(job.backend);
  json["library"] = job.facts().library;
  json["device"] = job.device ? Json(job.device->name) : Json(nullptr);
  json["threads"] = job.threads;
  json["hold_logits"] = job.hold_logits;
  json["targets"] = job.shared_targets ? "shared" : "separate";
  json["assumptions"] = job.assumptions;
  return json;
}

Json facts_json(const Job& job) {
  Json facts = Json::array();
  for (const network::Fact& fact : network::fact_list(job.backend)) {
    Json json;
    json["what"] = fact.what;
    json["value"] = fact.value;
    json["evidence"] = network::name(fact.evidence);
    json["source"] = fact.source;
    facts.push_back(std::move(json));
  }
  return facts;
}

}  // namespace plimsoll::report
