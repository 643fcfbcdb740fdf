#include "plimsoll/report/inference.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/report/roofline_text.hpp"

namespace plimsoll::report {
namespace {

InferencePart part_of(const Inference& inference, std::string name, plan::InferencePass pass,
                      std::int64_t tokens) {
  InferencePart part{std::move(name), pass, tokens, std::nullopt};
  if (inference.device) {
    part.bound = plan::roofline(*inference.device, inference.arithmetic,
                                static_cast<double>(pass.flops), static_cast<double>(pass.bytes()));
  }
  return part;
}

std::optional<std::int64_t> batch_that_fits(const Inference& inference) {
  if (!inference.device || inference.cache.bytes_per_row == 0) return std::nullopt;
  const auto budget = hardware::memory_budget(*inference.device, inference.reserve);
  const std::int64_t left = budget.available() - inference.weights;
  return std::max<std::int64_t>(0, left / inference.cache.bytes_per_row);
}

std::string cache_section(const Inference& inference, const TextStyle& style) {
  Table table({{"layers"}, {"values per token", Align::kLeft}, {"bytes"}, {"keeps", Align::kLeft}});
  for (const plan::CacheLine& line : inference.cache.lines) {
    table.row({grouped(line.layers), line.formula, grouped(line.bytes_per_token),
               line.window > 0 ? fmt::format("the last {} tokens", grouped(line.window)) : "all"});
  }
  const plan::KvCache& cache = inference.cache;
  return fmt::format("\n{} in {}: {} bytes per token, {} ({}) for {} x {} tokens\n{}",
                     bold("KV cache", style), inference.kv_dtype, grouped(cache.bytes_per_token),
                     grouped(cache.total), human(Bytes{cache.total}), grouped(inference.job.batch),
                     grouped(inference.job.context), table.text(style));
}

std::string rate_text(const InferencePart& part) {
  if (!part.bound || part.bound->seconds == 0) return "";
  return fmt::format("{:.5g}", static_cast<double>(part.tokens) / part.bound->seconds);
}

std::string parts_section(const Inference& inference, const TextStyle& style) {
  Table table({{"", Align::kLeft},
               {"FLOPs"},
               {"weights"},
               {"cache"},
               {"FLOP/B"},
               {inference.device ? "at least" : ""},
               {"", Align::kLeft},
               {inference.device ? "tokens/s" : ""}});
  for (const InferencePart& part : inference.parts) {
    table.row({part.name, human(Flops{part.pass.flops}), human(Bytes{part.pass.weight_bytes}),
               human(Bytes{checked_add(part.pass.cache_read, part.pass.cache_written)}),
               fmt::format("{:.2f}", part.pass.intensity()),
               part.bound ? with_prefix(part.bound->seconds, "s") : "",
               part.bound ? bound_by(*part.bound) : "", rate_text(part)});
  }
  return fmt::format("\n{}: {} tokens a row at once; a step yields one token a row\n",
                     bold("Passes", style), grouped(inference.job.prompt)) +
         table.text(style) + device_roof(inference.device.get(), inference.arithmetic, style);
}

std::string fit_line(const Inference& inference) {
  if (!inference.largest_batch) return "";
  const auto budget = hardware::memory_budget(*inference.device, inference.reserve);
  return fmt::format("  {} usable, {} kept free: the caches of {} rows fit beside the weights\n",
                     human(Bytes{budget.usable}), human(Bytes{budget.reserve.value.value_or(0)}),
                     grouped(*inference.largest_batch));
}

std::string assumption_section(const Inference& inference, const TextStyle& style) {
  if (inference.assumptions.empty()) return "";
  std::string text = "\n" + bold("Assumptions", style) + "\n";
  for (const std::string& line : inference.assumptions) {
    text += "  - " + wrapped(visible(line), 4, 4, style.width) + "\n";
  }
  return text;
}

Json pass_json(const InferencePart& part) {
  Json json;
  json["flops"] = part.pass.flops;
  json["bytes"] = part.pass.bytes();
  json["weight_bytes"] = part.pass.weight_bytes;
  json["cache_read"] = part.pass.cache_read;
  json["cache_written"] = part.pass.cache_written;
  json["intensity"] = part.pass.intensity();
  json["tokens"] = part.tokens;
  add_point(json, part.bound);
  return json;
}

Json cache_json(const plan::KvCache& cache) {
  Json layers = Json::array();
  for (const plan::CacheLine& line : cache.lines) {
    layers.push_back({{"layers", line.layers},
                      {"formula", line.formula},
                      {"bytes_per_token", line.bytes_per_token},
                      {"window", line.window == 0 ? Json(nullptr) : Json(line.window)}});
  }
  return {{"per_token", cache.bytes_per_token},
          {"per_row", cache.bytes_per_row},
          {"total", cache.total},
          {"layers", std::move(layers)}};
}

}  // namespace

void compute(Inference& i) {
  i.weights = checked_mul(i.job.weight_item, i.shape.parameters);
  i.cache = plan::kv_cache(i.shape, i.job);
  i.parts = {
      part_of(i, "prefill", plan::prefill(i.shape, i.job), checked_mul(i.job.batch, i.job.prompt)),
      part_of(i, "decode", plan::decode(i.shape, i.job), i.job.batch),
      part_of(i, "without a cache", plan::decode_without_cache(i.shape, i.job), i.job.batch)};
  i.largest_batch = batch_that_fits(i);
}

std::string inference_text(const Inference& i, const TextStyle& style) {
  std::string text = fmt::format("{}: {} parameters ({})", bold(visible(i.shape.title), style),
                                 grouped(i.shape.parameters), human_count(i.shape.parameters));
  if (i.shape.inactive > 0) {
    text += fmt::format(", {} of them active ({})", grouped(i.shape.active()),
                        human_count(i.shape.active()));
  }
  text += fmt::format("\n\n{} in {}: {} bytes ({})\n", bold("Weights", style), i.weight_dtype,
                      grouped(i.weights), human(Bytes{i.weights}));
  return text + cache_section(i, style) + fit_line(i) + parts_section(i, style) +
         assumption_section(i, style);
}

Json inference_json(const Inference& i) {
  Json json;
  json["schema"] = "plimsoll.infer/1";
  json["model"] = i.shape.title;
  json["parameters"] = i.shape.parameters;
  json["active_parameters"] = i.shape.active();
  json["batch"] = i.job.batch;
  json["prompt"] = i.job.prompt;
  json["context"] = i.job.context;
  json["dtype"] = i.weight_dtype;
  json["kv_dtype"] = i.kv_dtype;
  json["device"] = i.device ? Json(i.device->name) : Json(nullptr);
  json["weights"] = i.weights;
  json["kv_cache"] = cache_json(i.cache);
  json["prefill"] = pass_json(i.parts.at(0));
  json["decode"] = pass_json(i.parts.at(1));
  json["decode_without_cache"] = pass_json(i.parts.at(2));
  json["largest_batch"] = i.largest_batch ? Json(*i.largest_batch) : Json(nullptr);
  json["assumptions"] = i.assumptions;
  return json;
}

}  // namespace plimsoll::report
