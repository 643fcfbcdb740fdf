#include <nlohmann/json.hpp>

#include "plimsoll/report/job.hpp"
#include "plimsoll/report/measure_reports.hpp"

namespace plimsoll::report {
namespace {

void add_reason(Json& json, const std::string& measured_reason) {
  if (!measured_reason.empty()) json["reason"] = {{"measured", measured_reason}};
}

Json fit_json(const AffineFit& fit) {
  Json points = Json::array();
  for (const AffinePoint& p : fit.points) {
    points.push_back({{"batch", p.batch},
                      {"calculated", p.calculated},
                      {"measured", number_or_null(p.measured)},
                      {"residual", p.residual}});
  }
  return {{"fitted", fit.of_measured ? "measured" : "calculated"},
          {"A0", fit.A0},
          {"k", fit.k},
          {"points", std::move(points)}};
}

Json families_json(const FamiliesReport& families) {
  Json rows = Json::array();
  for (const FamilyRow& row : families.rows) {
    rows.push_back({{"shape", row.shape},
                    {"dtype", row.dtype},
                    {"saved_by", row.saved_by},
                    {"grows", row.grows()},
                    {"calculated", row.calculated},
                    {"calculated_doubled", row.calculated_doubled},
                    {"measured", number_or_null(row.measured)},
                    {"measured_doubled", number_or_null(row.measured_doubled)}});
  }
  Json json = {{"batch", families.batch},           {"constant", families.constant()},
               {"growing", families.growing()},     {"parameter_bytes", families.parameter_bytes},
               {"collisions", families.collisions}, {"rows", std::move(rows)}};
  add_reason(json, families.measured_reason);
  return json;
}

Json sweep_json(const SweepReport& sweep) {
  Json points = Json::array();
  for (const SweepPoint& p : sweep.points) {
    points.push_back({{"value", p.value},
                      {"calculated", p.calculated},
                      {"measured", number_or_null(p.measured)},
                      {"A0", number_or_null(p.A0)},
                      {"k", number_or_null(p.k)}});
  }
  Json json = {{"axis", name(sweep.axis)},
               {"batch", sweep.batch},
               {"points", std::move(points)},
               {"notes", sweep.notes}};
  add_reason(json, sweep.measured_reason);
  return json;
}

Json bisect_json(const BisectReport& bisect) {
  Json tries = Json::array();
  for (const BisectTry& t : bisect.tries) {
    tries.push_back({{"batch", t.batch}, {"peak", t.peak}, {"fits", t.fits}});
  }
  return {{"limit", bisect.limit},
          {"largest", number_or_null(bisect.largest)},
          {"calculated_largest", number_or_null(bisect.calculated_largest)},
          {"tries", std::move(tries)}};
}

}  // namespace

Json measurement_json(const Measurement& m) {
  Json json;
  json["schema"] = "plimsoll.measure/1";
  json["model"] = model_json(m.spec, m.parameters);
  json["job"] = job_json(m.spec, m.job);
  json.update(reconciliation_json(m.reconciliation));
  if (m.fit_batch) json["fit_batch"] = fit_json(*m.fit_batch);
  if (m.families) json["families"] = families_json(*m.families);
  if (m.sweep) json["sweep"] = sweep_json(*m.sweep);
  if (m.bisect) json["bisect"] = bisect_json(*m.bisect);
  return json;
}

}  // namespace plimsoll::report
