#include <nlohmann/json.hpp>

#include "plimsoll/report/math_model.hpp"
#include "plimsoll/report/roofline_text.hpp"

namespace plimsoll::report {
namespace {

Json conventions_json(const plan::ConventionFlops& flops) {
  return {{"full", flops.full},
          {"causal_half", flops.causal_half},
          {"causal_exact", flops.causal_exact}};
}

Json row_json(const ModelMath& math, const plan::CostRow& row) {
  std::optional<plan::RooflinePoint> point;
  if (math.job.device) {
    point = plan::roofline(*math.job.device, plan::arithmetic_of(math.job.recipe().compute),
                           static_cast<double>(row.flops.causal_exact),
                           static_cast<double>(row.bytes()));
  }
  Json json;
  json["operation"] = row.operation;
  json["pass"] = row.pass;
  json["formula"] = row.formula;
  json["flops"] = row.flops.causal_exact;
  json["flops_by_convention"] = conventions_json(row.flops);
  json["bytes"] = row.bytes();
  json["bytes_read"] = row.bytes_read;
  json["bytes_written"] = row.bytes_written;
  json["intensity"] = row.intensity();
  add_point(json, point);
  return json;
}

Json experts_json(const std::optional<plan::ExpertFacts>& experts) {
  if (!experts) return nullptr;
  return {{"layers", experts->layers},
          {"experts", experts->experts},
          {"per_token", experts->per_token},
          {"sparsity", experts->sparsity},
          {"all_to_all_bytes", experts->all_to_all_bytes},
          {"exchanges", experts->exchanges}};
}

Json activations_json(const ModelMath& math) {
  Json all = Json::array();
  for (const LayerCopies& copies : math.activations) {
    Json tensors = Json::array();
    for (const plan::LayerTensor& tensor : copies.tensors) {
      tensors.push_back({{"saved_by", tensor.saved_by},
                         {"shape", network::to_text(tensor.shape)},
                         {"dtype", network::name(tensor.dtype)},
                         {"bytes", tensor.bytes}});
    }
    all.push_back({{"checkpoint", copies.policy},
                   {"copies", copies.copies},
                   {"tensors", std::move(tensors)}});
  }
  return all;
}

Json time_json(const std::optional<plan::TimeBound>& bound) {
  Json json;
  json["bound_seconds"] = bound ? Json(bound->seconds) : Json(nullptr);
  json["by"] = bound ? Json(bound->by()) : Json(nullptr);
  return json;
}

}  // namespace

Json model_math_json(const ModelMath& math) {
  Json json;
  json["schema"] = "plimsoll.math/1";
  json["what"] = "model";
  json["model"] = math.shape.title;
  json["parameters"] = math.shape.parameters;
  json["active_parameters"] = math.shape.active();
  json["batch"] = math.job.batch;
  json["seq"] = math.job.sequence;
  json["dtype"] = network::name(math.job.recipe().compute);
  json["device"] = math.job.device ? Json(math.job.device->name) : Json(nullptr);
  json["rows"] = Json::array();
  for (const plan::CostRow& row : math.rows) json["rows"].push_back(row_json(math, row));
  json["training"] = conventions_json(math.training);
  json["conventions"] = Json::array();
  for (const plan::TokenConvention& c : math.conventions) {
    json["conventions"].push_back(
        {{"name", c.name}, {"formula", c.formula}, {"flops_per_token", c.flops_per_token}});
  }
  json["attention_crossover_tokens"] = math.crossover;
  json["experts"] = experts_json(math.experts);
  json["time"] = time_json(math.bound);
  json["utilisation"] = Json::array();
  for (const Utilisation& u : math.utilisation) {
    json["utilisation"].push_back({{"convention", u.convention}, {"fraction", u.fraction}});
  }
  json["states"] = {{"ranks", math.states_ranks}, {"rows", Json::array()}};
  for (const StatesLine& line : math.states) {
    json["states"]["rows"].push_back(
        {{"recipe", line.recipe}, {"meaning", line.meaning}, {"bytes_by_stage", line.totals}});
  }
  json["activations"] = activations_json(math);
  return json;
}

}  // namespace plimsoll::report
