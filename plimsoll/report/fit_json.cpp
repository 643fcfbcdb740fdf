#include <nlohmann/json.hpp>

#include "plimsoll/report/fit.hpp"
#include "plimsoll/report/job.hpp"

namespace plimsoll::report {
namespace {

using plan::Change;
using plan::Fit;
using plan::FitOption;
using plan::FitReport;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json change_json(const Change& change) {
  Json settings = Json::object();
  for (const plan::Setting& setting : change.settings) settings[setting.option] = setting.value;
  Json json;
  json["settings"] = std::move(settings);
  json["command"] = change.command;
  json["cost"] = plan::name(change.cost);
  json["needed"] = change.need.bytes;
  json["saved"] = change.saved;
  json["flops_factor"] = change.flops;
  json["traffic"] = change.need.traffic;
  json["traffic_added"] = change.traffic;
  return json;
}

Json changes_json(const Fit& fit) {
  Json changes = Json::array();
  for (const Change& change : fit.changes.found) changes.push_back(change_json(change));
  return changes;
}

// Why a figure is null or a list empty.
Json reasons_json(const Fit& fit) {
  Json reasons = Json::object();
  if (!fit.largest_batch) reasons["largest_batch"] = "not even one row fits";
  if (fit.need.fits) reasons["changes"] = "it fits";
  if (!fit.changes.reason.empty()) reasons["changes"] = fit.changes.reason;
  return reasons;
}

Json verdict_json(const Fit& fit, const plan::Job& job) {
  const auto& reserve = fit.budget.reserve;
  Json json;
  json["device"] = job.device->name;
  json["capacity"] = fit.budget.capacity;
  json["usable"] = fit.budget.usable;
  json["reserve"] = reserve.value.value_or(0);
  json["reserve_source"] = {{"evidence", name(reserve.evidence)}, {"source", reserve.source}};
  json["available"] = fit.need.available;
  json["needed"] = fit.need.bytes;
  json["decided_by"] = plan::decided_by(job);
  json["verdict"] = plan::name(fit.verdict);
  json["largest_batch"] = or_null(fit.largest_batch);
  json["changes"] = changes_json(fit);
  json["reason"] = reasons_json(fit);
  return json;
}

Json option_json(const FitOption& option, bool best) {
  Json json;
  json["zero"] = static_cast<int>(option.stage);
  json["checkpoint"] = network::name(option.checkpoint);
  json["needed"] = option.need.bytes;
  json["fits"] = option.need.fits;
  json["flops_factor"] = option.flops;
  json["traffic"] = option.need.traffic;
  json["largest_batch"] = or_null(option.largest_batch);
  json["best"] = best;
  return json;
}

Json report_reasons(const FitReport& report, Json reasons) {
  const bool image = report.spec.family == network::Family::kCnn;
  const auto explain = [&](const char* key, bool known, const char* why) {
    if (!known) reasons[key] = image ? "image networks have none" : why;
  };
  explain("closed_form", report.closed_form.with_A0.has_value(), "not even one row fits");
  explain("closed_form_without_A0", report.closed_form.without_A0.has_value(),
          "not even one row fits");
  explain("longest_sequence", report.longest_sequence.has_value(), "not even one token fits");
  if (!report.fewest_ranks.ranks) reasons["fewest_ranks"] = "no number of ranks makes it fit";
  return reasons;
}

}  // namespace

Json fit_json(const std::optional<Fit>& fit, const plan::Job& job) {
  if (fit) return verdict_json(*fit, job);
  Json json;
  for (const char* key : {"device", "capacity", "usable", "reserve", "reserve_source", "available",
                          "needed", "decided_by", "verdict", "largest_batch"}) {
    json[key] = nullptr;
  }
  json["changes"] = Json::array();
  json["reason"] = "no device was asked for";
  return json;
}

Json fit_report_json(const FitReport& report) {
  const Json verdict = verdict_json(report.fit, report.job);
  Json json;
  json["schema"] = "plimsoll.fit/1";
  json["model"] = model_json(report.spec, report.parameters);
  json["job"] = job_json(report.spec, report.job);
  for (const char* key : {"device", "capacity", "usable", "reserve", "reserve_source", "available",
                          "needed", "decided_by", "verdict"}) {
    json[key] = verdict[key];
  }
  json["largest_batch"] = {{"timeline", or_null(report.fit.largest_batch)},
                           {"closed_form", or_null(report.closed_form.with_A0)},
                           {"closed_form_without_A0", or_null(report.closed_form.without_A0)}};
  json["longest_sequence"] = or_null(report.longest_sequence);
  json["fewest_ranks"] = or_null(report.fewest_ranks.ranks);
  json["fewest_ranks_zero"] = static_cast<int>(report.fewest_ranks.stage);
  Json options = Json::array();
  for (std::size_t i = 0; i < report.options.size(); ++i) {
    options.push_back(option_json(report.options[i], report.best == i));
  }
  json["options"] = std::move(options);
  json["changes"] = verdict["changes"];
  json["reason"] = report_reasons(report, verdict["reason"]);
  return json;
}

}  // namespace plimsoll::report
