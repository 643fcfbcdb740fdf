#include "plimsoll/report/plan_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/report/fit.hpp"
#include "plimsoll/report/job.hpp"
#include "plimsoll/report/plan_figures.hpp"
#include "plimsoll/report/plan_memory.hpp"
#include "plimsoll/timeline/alive_tags.hpp"

namespace plimsoll::report {
namespace {

using plan::Plan;
using plan::StepTimeline;

Json posts_json(const plan::Posts& posts) {
  Json optimizer;
  optimizer["moments"] = posts.moments;
  optimizer["step_counters"] = posts.step_counters;
  optimizer["loss_scaler"] = posts.loss_scaler;
  Json json;
  json["P"] = posts.parameters;
  json["G"] = posts.gradients;
  json["O"] = std::move(optimizer);
  json["A"] = posts.activations;
  json["by_formula"] = posts.by_formula;
  return json;
}

void add_inference_posts(Json& json, const plan::InferencePosts& posts) {
  json["kv_cache"] = posts.kv_cache;
  json["inputs"] = posts.inputs;
  json["transients"] = posts.transients;
  json["logits"] = posts.logits;
}

// Every tag, those without bytes too: readers need not test for presence.
Json tags_json(const timeline::Peak& peak) {
  Json json;
  for (std::size_t i = 0; i < peak.alive.size(); ++i) {
    json[std::string(timeline::name(static_cast<timeline::Tag>(i)))] = peak.alive[i];
  }
  return json;
}

Json ledger_json(const plan::Ledger& ledger) {
  Json json;
  for (const NamedLine& named : ledger_lines(ledger)) {
    Json line;
    line["bytes"] = named.line.bytes;
    line[named.storages ? "storages" : "tensors"] = named.line.count;
    json[std::string(named.name)] = std::move(line);
  }
  return json;
}

Json phase_json(const timeline::PhaseFigures& figures) {
  Json json;
  json["name"] = timeline::name(figures.key.phase);
  json["micro_batch"] = figures.key.micro_batch;
  json["start"] = figures.start;
  json["end"] = figures.end;
  json["peak"] = figures.peak;
  return json;
}

Json step_json(const StepTimeline& step) {
  Json phases = Json::array();
  for (const timeline::PhaseFigures& figures : step.phases) phases.push_back(phase_json(figures));
  Json alive = Json::array();
  for (const timeline::AliveTag& tag : timeline::alive_tags(step.peak)) {
    alive.push_back({{"tag", timeline::name(tag.tag)}, {"bytes", tag.bytes}});
  }
  Json peak;
  peak["bytes"] = step.peak.bytes;
  peak["phase"] = timeline::name(step.peak.phase.phase);
  peak["micro_batch"] = step.peak.phase.micro_batch;
  peak["operation"] = step.peak_operation;
  peak["alive"] = std::move(alive);
  Json json;
  json["phases"] = std::move(phases);
  json["peak"] = std::move(peak);
  return json;
}

Json closed_form_json(const Plan& plan) {
  Json json;
  if (!plan.closed_form) {
    json["posts"] = nullptr;
    json["error_against_ledger"] = nullptr;
    json["reason"] =
        plan.inference ? "inference has no closed form" : "image networks have no closed form";
    return json;
  }
  const plan::ClosedFormPosts& posts = plan.closed_form->posts;
  json["posts"] = {{"P", whole_bytes(posts.parameters)},
                   {"G", whole_bytes(posts.gradients)},
                   {"O", whole_bytes(posts.optimizer)},
                   {"A", whole_bytes(posts.activations)}};
  json["error_against_ledger"] = plan.closed_form->error;
  return json;
}

Json flops_json(const Plan& plan) {
  Json json;
  json["scope"] = plan.inference ? "one pass" : "one micro-batch";
  for (const PassLine& pass : pass_lines(plan.flops)) {
    json[std::string(pass.name)] = {{"full", pass.flops.total_full()},
                                    {"causal_half", pass.flops.total_half()},
                                    {"causal_exact", pass.flops.total_exact()}};
  }
  // The rule counts tokens; images have none.
  const bool image = plan.spec.family == network::Family::kCnn;
  json["rule_6nt"] = image || plan.inference ? Json(nullptr) : Json(plan.rule_6nt);
  return json;
}

Json logits_json(const Plan& plan) {
  if (!plan.logits) return nullptr;
  const plan::LogitCopies& logits = *plan.logits;
  Json copies = Json::array();
  for (const plan::LogitCopy& copy : logits.copies) {
    copies.push_back({{"what", copy.what},
                      {"phase", timeline::name(copy.phase)},
                      {"item_bytes", copy.item},
                      {"bytes", copy.bytes}});
  }
  return {{"chunks", logits.chunks},
          {"rows", logits.rows},
          {"vocabulary", logits.vocabulary},
          {"copies", std::move(copies)},
          {"most_at_once", logits.most_at_once},
          {"peak_whole", logits.chunks > 1 ? Json(logits.peak_whole) : Json(nullptr)}};
}

Json traffic_json(const Plan& plan) {
  Json lines = Json::array();
  for (const plan::TrafficLine& line : plan.traffic) {
    Json json;
    json["what"] = line.what;
    json["collective"] = line.collective;
    json["units"] = line.units;
    json["bytes"] = line.bytes;
    json["formula"] = line.formula;
    json["formula_bytes"] = line.formula_bytes;
    lines.push_back(std::move(json));
  }
  return lines;
}

// What the same job has in semantics hf, and by how much that differs from this plan.
Json semantics_json(const Plan& plan) {
  Json json = {{"peak", nullptr}, {"A", nullptr}, {"flops", nullptr}};
  for (const SemanticsLine& line : semantics_lines(plan)) {
    json[std::string(line.name)] = {{"value", line.other}, {"difference", line.difference()}};
  }
  const bool known = plan.hugging_face.figures.has_value();
  json["reason"] = known ? Json(nullptr) : Json(plan.hugging_face.reason);
  return json;
}

Json time_json(const Plan& plan) {
  Json json;
  json["bound_seconds"] = plan.time ? Json(plan.time->seconds) : Json(nullptr);
  json["by"] = plan.time ? Json(plan.time->by()) : Json(nullptr);
  const bool image = plan.spec.family == network::Family::kCnn;
  json["reason"] =
      plan.time           ? Json(nullptr)
      : plan.inference    ? Json("plimsoll infer has the bounds of prefill and decode")
      : !plan.job.device  ? Json("no device was asked for")
      : plan.job.adapts() ? Json("bounds of runs with frozen parameters are not in this version")
      : image             ? Json("bounds of image networks are not in this version")
              : Json("the device's peak for this arithmetic or its bandwidth is unknown");
  return json;
}

}  // namespace

Json plan_json(const Plan& plan) {
  Json json;
  json["schema"] = "plimsoll.plan/1";
  json["model"] = model_json(plan.spec, plan.parameters);
  json["job"] = job_json(plan.spec, plan.job);
  json["posts"] = posts_json(plan.posts);
  if (plan.inference) add_inference_posts(json["posts"], *plan.inference);
  json["tags"] = tags_json(plan.steady.peak);
  json["ledger"] = ledger_json(plan.ledger);
  json["timeline"] = {{"first", step_json(plan.first)}, {"steady", step_json(plan.steady)}};
  json["memory"] = memory_json(plan);
  json["closed_form"] = closed_form_json(plan);
  json["flops"] = flops_json(plan);
  json["semantics_hf"] = semantics_json(plan);
  json["logits"] = logits_json(plan);
  json["traffic"] = traffic_json(plan);
  json["advice"] = plan.advice;
  json["time"] = time_json(plan);
  json["fit"] = fit_json(plan.fit, plan.job);
  json["facts"] = facts_json(plan.job);
  return json;
}

}  // namespace plimsoll::report
